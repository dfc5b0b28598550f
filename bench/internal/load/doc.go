// Package load sends requests to a ZooKeeper server as fast as it answers: many clients on
// one thread, each with one request in flight. It speaks the protocol itself, because the
// cost of a client library would hide the difference between two servers. Linux only.
//
// Every job also checks the answers: an answer that cannot be right ends the measurement
// with an error.
package load
