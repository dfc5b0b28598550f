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
// An exact script is the only user of a pair of servers, so the same request must get the same
// transaction id. Waiting scripts wait until sessions expire and the servers delete containers.
// Several share a pair of servers, and their ids are compared by order.
//
// [Differences] lists the permitted differences with their reasons.
//
// The authentication tests compare the permissions of each identity: SASL users, digests,
// addresses, and the two super users. They connect this module's client, Java's, and kazoo to both
// servers. Java's server runs without FIPS mode, in which later releases refuse DIGEST-MD5.
//
// The comparison omits these deliberate differences:
//
//   - Entries of the scheme ip take IPv6 (ZOOKEEPER-4240): 3.9.3 refuses such a list.
//   - A malformed SASL request ends the connection on both servers; Java also logs an
//     exception.
//   - A server without SASL users refuses a token. Java answers with success and no
//     token, which makes its own client fail too.
//   - Connections that return after a take-over with a wrong password: see
//     internal/tree.
package differential
