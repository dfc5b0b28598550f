// Package zk is a client for Apache ZooKeeper. A Client has one session, over one
// connection at a time. It supports pipelined requests, watches that survive
// reconnects, authentication, and TLS.
//
// A Client keeps its session alive by itself. It reconnects when the connection is
// lost, sets its watches again, and starts a new session when the old one has
// expired. A request belongs to the session that was current when the caller made it.
// The servers answer it in that session, or it fails; it never runs in a later session.
// Every error says whether the servers may have applied the request; see [Applied].
//
// The methods that take a context wait for their answer. [Client.Go] does not: it
// queues the request and passes the result to a function, in wire order. A program
// can use both. Requests are sent in the order of the calls.
package zk
