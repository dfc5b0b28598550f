// Package interop runs the clients that share locks and servers with zklock:
// Curator, kazoo and zkCli.sh, unmodified, against any server's address.
//
// The clients are [Peer]s, processes that take commands while they live, so
// that a test can have one hold a lock while another tries. Those of package
// zklock are this test binary, started again. In a contest several of each
// library take one lock again and again, and tell a [Witness] when they hold: it
// sees who holds at once, which a run without a lock shows.
//
// What they see of a server on a tour of its operations is kept as a transcript
// in testdata, recorded from Apache ZooKeeper: another server must look the same
// to them.
package interop
