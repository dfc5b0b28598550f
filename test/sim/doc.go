// Package sim runs whole histories of clients, locks, network, server, and disk in one
// thread, on a clock of its own, from one seed: the same seed gives the same history, byte
// for byte. Only tests use it.
//
// A [World] drives the real cores: internal/session and internal/queue in each
// client process, internal/tree over internal/wal in the server, on a disk of
// internal/wal/memfs. What the shells of goroutines do in packages zklock, zk and
// zkserver is done here by steps in a random order that the goroutines could
// have. The goroutines themselves run in package faults, in bubbles of testing/synctest
// (TestSimulatedNetwork), which replay the faults of a seed but not the schedule.
//
// The clients take mutexes, read-write locks in every layout, semaphores with
// several permits, node locks, and several at once or in order, with and without
// a lock-delay, under heartbeats that are quorum writes or syncs. They give up,
// verify, write under a guard, downgrade, are asked for their locks, and wait for
// a release to be done or do not. Re-entrance is the shell's own: see package faults.
//
// # Seeds, faults and failures
//
// A seed determines the world ([NewConfig]), its faults (its script, which is drawn
// before), and all other random choices. A seed that fails is printed with the command
// that repeats it. [Shrink] searches for a script of few faults that breaks the same rule,
// and prints the command for that:
//
//	go test ./test/sim -run 'TestSeeds$' -v -seed=241
//	go test ./test/sim -run 'TestSeeds$' -v -seed=241 -faults=52,53 -until=5m25s -salt=24
//
// with -show for every request, answer, and event. A short run is part of the package's
// tests. `make simulate SEEDS=n FROM=m` runs more seeds on all processors. `make
// simulate-more SEEDS=n` runs seeds that never ran, and adds a line to
// test/sim/testdata/totals.tsv, whose columns are the fields of a [Run]. A run in which
// too little happened fails: too little time, or too few acquires or faults for each
// seed, or of any kind of lock or fault. So does a history without an end.
//
// # Which fault is where
//
//	fault                                     injected by
//	client, machine or server dies            kill, server kill, power loss, outage (all at once)
//	process stopped, 0 to 3 timeouts          pause, pause amid news (between two things it is told), server pause
//	machine suspended                         suspend: timers late, clock not
//	clocks                                    each client's rate within 1 % or 5 %; clock rate (changes), wall clock (server's, +-1 h)
//	client's wall clock                       no core is ever given one
//	answer lost after it was carried out      lose answer (create, delete, multi, get, list, set, ping, setWatches, closeSession), lose handshake
//	request lost                              lose request, lose handshake
//	connection cut, half-open                 cut (either side may not know), block (one way or both), refuse
//	link down and up, slow, trickling         flap, slow, trickle (1 to 1000 pieces of a few bytes a second)
//	follower without its leader               follower cut off, with its clients kept or dropped; isolation of who holds
//	session moved back, then old requests     follower cut off, with a detour of its client
//	stale reads of a lagging follower         spec/queue.pml, spec/recovery.pml; test/faults
//	minority leader                           spec/deposed.pml; test/faults
//	disk: EIO, short write, torn record       disk error, power loss amid a write
//	disk: what was not synced is lost         power loss, outage; a kill amid recovery
//	disk: full, slow                          disk full (over restarts), disk stall
//	disk: bits turned over                    bit flip; internal/wal TestFlippedBitsAreDetected turns every one
//	restart: one by one, all at once          rolling restart, outage; of an ensemble: test/faults
//	operators                                 delete, sweep (a lock and its parents), expire, touch, acl, stray, foreign entry
//	sequence near 2^31                        sequence jump
//	zxid's low word near its end              a quarter of the worlds begin there
//	hostile server                            garbage; internal/session's fuzz targets
//	hostile client                            hostile frames; zkserver's tests of slow, many and greedy clients
//	starved processor, no file descriptors    to a core no more than any delay, and refuse
//
// # What is checked
//
// At every grant, for each of its locks: no conflicting hold is safe by its own client's
// clock; no entry that excludes it is ahead on the server; the token is above all earlier
// ones that conflict; its number is below the limit; and an acquire with a lock delay has
// waited for a lock whose holder crashed, and for no other. At every step of the server:
// the znodes of a hold that is safe by its client's clock exist, unless an operator
// deleted one, and then the hold is lost in time; and guarded writes come in the order of
// the tokens. At every step of a client: no hold outlives its deadline, and an entry that
// is reported as released is gone. At every restart of the server: nothing acknowledged is
// lost. After the faults: every waiter is granted in time, and no znode is left except
// parents and the records of crashed clients.
//
// Package test/mutants breaks one rule of the product at a time; TestMutant must
// then fail, which shows that the checks detect it.
package sim
