// Package load makes requests to a ZooKeeper server as fast as it answers: many
// clients, each with one request under way, all on one thread. It speaks the
// protocol by itself, with no client library in between whose costs would blur
// the difference between two servers. Linux only.
//
// Whatever a job does it also checks: an answer that cannot be right ends the
// measurement with an error.
package load
