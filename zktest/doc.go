// Package zktest is to ZooKeeper what net/http/httptest is to HTTP: a real
// server in the test's own process, started in one line and gone with the
// test, and faults on request.
//
//	func TestJobs(t *testing.T) {
//		srv := zktest.Start(t)
//		client := srv.Dial(t) // a *zk.Client
//		...
//	}
//
// For locks, dial package zklock the same way:
//
//	locks, err := zklock.Dial(ctx, srv.Servers(), &zklock.Options{DialContext: srv.DialContext})
//
// # Ways to reach the server
//
//   - [Relay.Dial] and [Relay.DialContext]: within the process and without a
//     port. Tests run side by side, and in testing/synctest bubbles, where a
//     session timeout of half a minute passes in no time.
//   - [Relay.ListenTCP]: a loopback port, for programs in other processes and
//     languages, which take it for a ZooKeeper of one server. Servers then returns
//     its address.
//   - [NewProxy]: before a ZooKeeper that somebody else started, an ensemble of
//     one's own say, with the same faults.
//
// # Faults
//
// A [Server], a [Proxy] and a [Route] each have a [Relay], which reads what
// passes between clients and server:
//
//	what happens                                       how
//	a session ends, its ephemeral nodes go             ExpireClient, ExpireSession
//	the reply is lost, the request was applied         DropReply
//	the request is lost, nothing was applied           DropRequest
//	the connection ends behind a reply                 CutAfter
//	all connections end                                CutConnections
//	nobody listens                                     Refuse
//	a partition, both ways or one                      Partition, Heal
//	the server's end is gone, nobody tells the client  HalfOpen
//	latency, fixed or by direction and operation       Delay, DelayFunc
//	a line of some bytes a second                      Trickle
//
// DropReply, DropRequest and CutAfter take a [Match], which counts requests of
// one operation and path. With a [Route] a fault concerns some clients, so that
// one of several loses its lock. What only a server of one's own can do is with
// [Server]:
//
//	the server is killed, loses power, comes back      Stop, Crash, Restart
//	the server stands still                            Pause, Resume
//	its disk is full, or fails                         FillDisk, FailDisk, MendDisk
//	the sequence numbers near their end                JumpSequence
//
// # What to test
//
// A program that holds a lock must stop working when the lock is lost, before
// somebody else gets it. There are two ways to lose one, and a test for each:
//
//   - The session ends at the server: [Relay.ExpireSession]. The client learns
//     it at once, and the program must stop: see the example LostLock.
//   - The network is cut: [Relay.Partition]. Nobody tells the client anything;
//     the hold ends by the client's own clock, before the server gives the lock
//     away. In a bubble such a test takes no time: see the example Bubble.
//
// Then, what it makes of a reply that is lost: [Relay.DropReply] with "create2",
// the create by which an acquire queues up, and with "delete", a release.
//
// # In a bubble
//
// Start the server, dial and close within the bubble that synctest.Test makes;
// only ListenTCP and NewProxy are not for bubbles. Clients that ping keep the
// clock going as real ones do; it stands still while the server is thinking.
//
// Without a *testing.T, in TestMain or an example, [New] makes a server.
package zktest
