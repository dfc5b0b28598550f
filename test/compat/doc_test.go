// Package compat tests that locks of this module and those of Curator, kazoo, and
// ZooKeeper's recipes exclude each other. The other clients run unmodified, on
// Apache ZooKeeper and on the embedded server.
//
// Each client is a [harness.Peer], a process that takes commands, so that a test can
// make one hold a lock while another tries. A client of package zklock is this test
// binary, started again. In a contest, several clients of each library take one lock
// again and again and tell a [Witness] when they hold it. The witness sees which
// clients hold at the same time; a run without a lock shows that it does.
//
// Package differential compares the two servers request by request; package clients
// compares them through complete clients.
package compat
