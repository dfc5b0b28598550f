// Package zk is a client for Apache ZooKeeper: one session over one
// connection at a time, with pipelined requests, watches that survive
// reconnects, authentication and TLS.
//
// A Client keeps its session alive by itself. It reconnects when the
// connection is lost, registers its watches again, and begins a new session
// when the old one has expired. A request is bound to the session that was
// current when it was made: it is answered in that session or it fails, and
// never runs in a later one. Every failure says whether the request may have
// been applied; see [Applied].
//
// The methods that take a context wait for their answer. [Client.Go] does
// not: it queues the request and hands the result to a function, in the order
// of the wire. Both may be mixed; requests leave in the order of the calls.
package zk
