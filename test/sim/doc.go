// Package sim runs complete histories of clients, locks, network, server, and disk in one
// thread, with its own clock. The same seed gives the same history, byte for byte. Only
// tests use it.
//
// A [World] drives the real cores: internal/session and internal/queue in each client
// process, and internal/tree over internal/wal in the server, on a disk of
// internal/wal/memfs. Steps in a random order replace the goroutines of packages zklock,
// zk, and zkserver. The goroutines themselves run in package faults, in bubbles of
// testing/synctest (TestSimulatedNetwork), which repeat the faults of a seed but not the
// schedule.
//
// The clients acquire mutexes, read-write locks in every layout, semaphores with several
// permits, node locks, and several locks at once or in order, with and without a lock
// delay, with quorum writes or syncs as heartbeats. They cancel, verify, write under a
// guard, downgrade, and receive release requests. Some wait until a release is done.
// Package faults tests re-entrance.
//
// # Seeds, faults and failures
//
// A seed determines the world ([NewConfig]), its faults (its script, drawn before the
// history begins), and all other random choices. If a seed fails, the test prints the
// command that repeats it. [Shrink] searches for a script of few faults that breaks the
// same rule, and the test prints the command for that too:
//
//	go test ./test/sim -run 'TestSeeds$' -v -seed=241
//	go test ./test/sim -run 'TestSeeds$' -v -seed=241 -faults=52,53 -until=5m25s -salt=24
//
// With -show, it prints every request, answer, and event. A short run is part of the
// package's tests. `make simulate SEEDS=n FROM=m` runs more seeds on all processors. `make
// simulate-more SEEDS=n` runs new seeds, and adds a line to test/sim/testdata/totals.tsv,
// whose columns are the fields of a [Run]. A run fails if it has too little simulated
// time, or too few acquires or faults per seed or of any kind. A history without an end
// fails too.
//
// # Where each fault is injected
//
//	fault                                     injected by
//	client, machine or server dies            kill, server kill, power loss, outage (all at once)
//	process stopped, 0 to 3 timeouts          pause, pause amid news (between two notices), server pause
//	machine suspended                         suspend: timers late, clock not
//	clocks                                    each client's rate within 1 % or 5 %; clock rate (changes), wall clock (server's, +-1 h)
//	client's wall clock                       no core reads it
//	answer to an applied request lost         lose answer (create, delete, multi, get, list, set, ping, setWatches, closeSession), lose handshake
//	request lost                              lose request, lose handshake
//	connection cut, half-open                 cut (either side may not know), block (one way or both), refuse
//	link down and up, slow, trickling         flap, slow, trickle (1 to 1000 pieces of a few bytes a second)
//	follower without its leader               follower cut off, with its clients kept or dropped; isolation of a holder
//	session moved back, then old requests     follower cut off, with a detour of its client
//	stale reads of a lagging follower         spec/queue.pml, spec/recovery.pml; test/faults
//	minority leader                           spec/deposed.pml; test/faults
//	disk: EIO, short write, torn record       disk error, power loss amid a write
//	disk: unsynced writes lost                power loss, outage; a kill amid recovery
//	disk: full, slow                          disk full (over restarts), disk stall
//	disk: flipped bits                        bit flip; internal/wal TestFlippedBitsAreDetected flips every bit
//	restart: one by one, all at once          rolling restart, outage; of an ensemble: test/faults
//	operators                                 delete, sweep (a lock and its parents), expire, touch, acl, stray, foreign entry
//	sequence near 2^31                        sequence jump
//	zxid's low word near its end              a quarter of the worlds begin there
//	hostile server                            garbage; internal/session's fuzz targets
//	hostile client                            hostile frames; zkserver's tests of slow, many and greedy clients
//	starved processor, no file descriptors    for a core, the same as a delay or refuse
//
// # What is checked
//
// At every grant, for each of its locks:
//   - No conflicting hold is safe by its own client's clock.
//   - No conflicting entry is ahead on the server.
//   - The token is larger than all earlier conflicting tokens.
//   - The sequence number is below the limit.
//   - An acquire with a lock delay has waited if the holder crashed, and only then.
//
// At every step of the server, the znodes of a hold that is safe by its client's clock
// exist. If an operator deletes one, the hold is lost in time. Guarded writes come in the
// order of the tokens. At every step of a client, no hold outlives its deadline, and an
// entry that is reported as released is gone. At every restart of the server, no
// acknowledged change is lost. After the faults, every waiter is granted in time, and only
// parents and the records of crashed clients remain.
//
// Package test/mutants breaks one rule of the product at a time. TestMutant must then fail,
// which shows that the checks detect it.
package sim
