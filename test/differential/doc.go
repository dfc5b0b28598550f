// Package differential runs random sequences of requests from several sessions
// against Apache ZooKeeper and against the embedded server, side by side, and
// compares all that comes back: replies byte by byte, errors, transaction ids,
// Stats, watch events, the order of events and replies on each connection, which
// connections are closed, and handshakes. So the expectations are ZooKeeper's own.
//
// What differs between two servers by nature is mapped before it is compared:
// transaction ids count from the pair's beginning, session ids are numbered, times
// become "the time of the transaction that stands beside them", and lists that
// Java takes from a hash table are sorted.
//
// A [Script] is a list of steps. It is found at random from a seed, shrunk when
// the servers differ over it, and printed as lines that -replay takes.
//
// There are two ways to run scripts. Exact scripts have a pair of servers to
// themselves, where the same request must take the very same transaction id.
// Waiting scripts need time to pass, for sessions to expire and containers to be
// collected; many share a pair, and their ids are compared by order.
//
// [Differences] lists what may differ, and why. Nothing else may.
package differential
