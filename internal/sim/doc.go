// Package sim runs whole histories of clients, locks, network, server and disk
// in one thread, in a time of its own, from one seed: the same seed gives the
// same history, byte for byte. It serves tests alone.
//
// A [World] drives the real cores: internal/session and internal/queue in each
// client process, internal/tree over internal/wal in the server, on a disk of
// internal/wal/memfs. Between them it has links that delay, stall and cut,
// processes that stop and die, clocks that run at differing rates, a follower
// that is cut off from its leader, a disk that fails, entries of other libraries,
// and operators who delete znodes. What the shells of goroutines do in packages
// zklock, zk and zkserver is done here by steps in a random order that the
// goroutines could have.
//
// The clients take mutexes, read-write locks in every layout, semaphores, node
// locks, and several at once or in order, with and without a lock-delay. They
// give up, verify, write under a guard, downgrade, and are asked for their locks.
//
// # What is checked
//
// At every grant, for each of its locks: no hold that conflicts is safe by its
// own client's clock; nothing that has to be waited for is ahead on the server;
// the token is above all before it that conflict; and a claim with a lock-delay
// has kept off a lock whose holder vanished, and no other. At every step of the
// server: the znodes of a hold that is safe by its client's clock are there,
// unless an operator deleted one, and then the hold is lost in time; and what is
// written under guards comes in the order of the tokens. At every step of a
// client: no hold outlives its deadline. At every restart of the server: nothing
// acknowledged is lost. And once the faults are over: every waiter is served in
// time, and no znode is left but parents and the records of those who vanished.
//
// A [Variant] breaks one rule in what passes between the cores, not in the
// cores. Each must be refuted by some seed: it shows that the checks bite.
package sim
