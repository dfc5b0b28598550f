// Package differential sends the same requests to Apache ZooKeeper and to the
// embedded server and compares the answers. The expected answers are ZooKeeper's.
//
// Random scripts run in several sessions. The comparison covers replies byte by byte,
// errors, transaction ids, Stats, watch events, the order of events and replies on
// each connection, closed connections, and handshakes. Values that differ between any
// two servers are mapped first: transaction ids count from the start of the pair,
// session ids are numbered, times become "the time of the transaction next to them",
// and lists that Java takes from a hash table are sorted. A [Script] is a list of
// steps, made from a seed. If the servers differ, the test shrinks the script and
// prints it as lines that -replay takes.
//
// Exact scripts have a pair of servers to themselves: the same request must get the
// same transaction id. Waiting scripts need time to pass, for sessions to expire and
// containers to be removed. Many share a pair, and their ids are compared by order.
//
// [Differences] lists what may differ, and why. Nothing else may.
//
// The authentication tests compare what each identity may do, with SASL users,
// digests, addresses, and the two super users, and connect this module's client,
// Java's, and kazoo to both servers. Java's server runs without FIPS mode, in which
// later releases refuse DIGEST-MD5.
//
// These differences are deliberate and left out of the comparison:
//
//   - Entries of the scheme ip take IPv6 (ZOOKEEPER-4240): 3.9.3 refuses such a list.
//   - A malformed SASL request ends the connection on both servers; Java also logs an
//     exception.
//   - A server without SASL users refuses a token. Java answers with success and no
//     token, which makes its own client fail too.
//   - Connections that return after a take-over with a wrong password: see
//     internal/tree.
package differential
