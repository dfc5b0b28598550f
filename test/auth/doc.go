// Package auth compares who may do what: the embedded server beside Apache
// ZooKeeper, and our client and Java's crosswise, with SASL users, digests,
// addresses and the two super users. The expectations are ZooKeeper's own.
//
// The embedded server runs with Compat38, for what is installed is 3.8.0. What
// later releases mended is therefore equal here and tested in internal/tree:
//
//   - exists needs READ (ZOOKEEPER-2590): 3.8.0 tells everybody a Stat.
//   - entries of the scheme ip take IPv6: 3.8.0 refuses such a list.
//
// What differs on purpose, and is left out of the comparison:
//
//   - 3.8.0 has one callback for all connections: a name that it does not know is
//     checked against the password of whoever authenticated last, and lets in who
//     knows that one. Later releases have one each, as the embedded server.
//   - A malformed SASL request ends the connection on both; Java logs an
//     exception of its own for it.
//   - A server without SASL users refuses a token; Java answers that all is well,
//     with no token, by which its own client fails too.
//   - Connections that come back after a take-over with a wrong password: see
//     internal/tree.
package auth
