// Package clients runs clients of other projects, unmodified, on an embedded server
// that keeps its data on disk: zkCli.sh, kazoo's and Curator's recipes, programs on
// the C library, and go-zookeeper.
//
// A script for each client calls its functions and prints the results, without values that differ
// between runs. The same script runs on Apache ZooKeeper at the same time, and both must print the
// same lines.
//
// With -suites, the test suites of kazoo and go-zookeeper run too, on both servers. They start
// servers by the commands java and zkServer.sh, which are this test binary ([ServerChild]).
//
// The golden files record the frames between ZooKeeper's Java client and a server, for the tests of
// the wire format. They have lines "name direction op hex":
//
//   - name is unique in its file and describes the step;
//   - direction is request, reply, event, connect-request, or connect-reply;
//   - op is the number of the operation, for a reply that of its request, and 0 for events and the
//     handshake;
//   - hex is the frame's body, without the four bytes of its length.
//
// Lines that begin with # are comments. The test records the frames again and compares them. With
// -update, it writes the files.
//
// The TLS tests connect this module's client to Apache ZooKeeper, and Java's client and kazoo to
// the embedded server, with client certificates that are identities in ACLs.
package clients
