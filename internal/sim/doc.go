// Package sim runs whole histories of clients, locks, network, server and disk
// in one thread, in a time of its own, from one seed: the same seed gives the
// same history, byte for byte. It serves tests alone.
//
// A [World] drives the real cores: internal/session and internal/queue in each
// client process, internal/tree over internal/wal in the server, on a disk of
// internal/wal/memfs. Between them it has links that delay, stall and cut,
// processes that stop and die, clocks that run at differing rates, a follower
// that is cut off from its leader, a disk that fails, and operators who delete
// znodes. What the shells of goroutines do in packages zklock, zk and zkserver
// is done here by steps in a random order that the goroutines could have.
//
// # What is checked
//
// At every grant: no other hold of the lock is safe by its own client's clock,
// the znode is the first of its queue on the server, and the token is above all
// before it. At every step of the server: the znode of a hold that is safe by
// its client's clock is there, unless an operator deleted it, and then the hold
// is lost in time. At every step of a client: no hold outlives its deadline. At
// every restart of the server: nothing acknowledged is lost. And once the
// faults are over: every waiter is served in time, and no znode is left.
//
// A [Variant] breaks one rule in what passes between the cores, not in the
// cores. Each must be refuted by some seed: it shows that the checks bite.
package sim
