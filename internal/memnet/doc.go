// Package memnet implements a network in memory: listeners, and connections that are
// buffered in both directions like TCP's, with fault injection. It makes tests of
// client and server fast, and possible inside testing/synctest bubbles: all waiting
// is on sync.Cond or on channels that the caller's goroutine created, and all time is
// package time's.
//
// A [Network] maps addresses to listeners. [Pipe] returns a single connection without
// a listener.
//
// Faults: [Conn.CloseAbrupt] resets a connection. [Network.SetUnreachable] makes new
// connections wait, as a partitioned network does.
package memnet
