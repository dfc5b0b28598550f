// Package compat tests that locks of this module and those of Curator, kazoo, and
// ZooKeeper's recipes exclude each other. The other clients run unmodified, on
// Apache ZooKeeper and on the embedded server.
//
// Each client is a [harness.Peer], a process that takes commands, so that a test can
// make one hold a lock while another tries. A client of package zklock is this test
// binary, started again. In a contest, several clients of each library acquire one lock
// repeatedly and report each hold to a [Witness], which detects holds at the same time.
//
// Package differential compares the two servers request by request; package clients
// compares them through complete clients.
package compat
