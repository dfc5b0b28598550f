// Package zktest is to ZooKeeper what net/http/httptest is to HTTP: a real
// server in the test's own process, started in one line and gone with the
// test, and faults on request.
//
//	func TestLock(t *testing.T) {
//		srv := zktest.Start(t)
//		client := srv.Dial(t)
//		...
//		srv.DropReply(zktest.Match{Op: "create2"})
//	}
//
// Nothing listens on a port unless [Server.ListenTCP] asks for it, so that
// tests run side by side, and in testing/synctest bubbles, where timeouts cost
// no time.
//
// The faults are those of a network and of an operator: connections cut,
// refused, swallowed one way or both, half open, slow; the reply to a request
// that was applied lost; a request lost; a session ended; a server stopped,
// restarted, crashed with a loss of power. They belong to [Relay], which
// [Proxy] puts before servers that this package did not start.
package zktest
