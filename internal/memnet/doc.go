// Package memnet is a network in memory: listeners, and connections that are
// buffered in both directions as TCP's are, with faults on request. It makes
// tests of client and server fast, and possible inside testing/synctest
// bubbles: all waiting is on sync.Cond or on channels made by the caller's
// goroutine, all time is package time's.
//
// A [Network] maps addresses to listeners. [Pipe] makes a single connection
// without one.
//
// Faults: [Conn.CloseAbrupt] resets a connection, [Conn.SetPaused] swallows
// what is sent in one direction or both until it is lifted, as a network
// that is cut does, and [Network.SetUnreachable] does so to new connections.
package memnet
