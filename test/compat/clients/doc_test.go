// Package clients runs clients of other projects, unmodified, on an embedded server
// that keeps its data on disk: zkCli.sh, kazoo's and Curator's recipes, programs on
// the C library, and go-zookeeper.
//
// A script for each client goes through its interface and prints what came, without
// what differs from run to run. The same script runs on Apache ZooKeeper at the same
// time, and both must print the same.
//
// With -suites, the test suites of kazoo and go-zookeeper run too, on both servers.
// They start their own servers, under the names of ZooKeeper's: java, zkServer.sh.
// Under these names they find this test binary ([ServerChild]).
//
// The golden files record what ZooKeeper's Java client and a server say to each
// other, for the tests of the wire format. They are files of lines "name direction op
// hex":
//
//   - name is unique in its file and says what was done;
//   - direction is request, reply, event, connect-request or connect-reply;
//   - op is the operation's number in decimal (for a reply that of its request),
//     0 for events and for the handshake, which have none;
//   - hex is the frame's body, without the four bytes of its length.
//
// Lines that begin with # are comments. The test records again and compares; with
// -update it writes the files.
//
// The TLS tests connect programs that share nothing but the protocol: this module's
// client with Apache ZooKeeper, and Java's client and kazoo with the embedded server,
// each with client certificates that are identities in ACLs.
package clients
