// Package zktest provides a ZooKeeper server for tests, as net/http/httptest provides an
// HTTP server. The server runs in the test's own process, starts in one line, ends with the
// test, and injects faults.
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
//   - [Relay.Dial] and [Relay.DialContext]: within the process, without a port. Tests can
//     run in parallel, and in testing/synctest bubbles, where a session timeout of half a
//     minute takes no real time.
//   - [Relay.ListenTCP]: a loopback port, for programs in other processes and languages.
//     To these programs, it is a ZooKeeper ensemble of one server. Servers then returns its
//     address.
//   - [NewProxy]: in front of another ZooKeeper, for example your own ensemble, with the
//     same faults.
//
// # Faults
//
// A [Server], a [Proxy], and a [Route] each have a [Relay] between clients and server:
//
//	fault                                              call
//	a session ends, with its ephemeral nodes           ExpireClient, ExpireSession
//	the reply is lost, the request was applied         DropReply
//	the request is lost, nothing was applied           DropRequest
//	the connection ends after a reply                  CutAfter
//	all connections end                                CutConnections
//	connections are refused                            Refuse
//	a partition, both ways or one                      Partition, Heal
//	the server's end is closed without notice          HalfOpen
//	latency, fixed or by direction and operation       Delay, DelayFunc
//	a slow link, in bytes per second                   Trickle
//	the server is of an old release                    Imitate
//
// DropReply, DropRequest, and CutAfter take a [Match], which selects requests by operation
// and path. With a [Route], a fault applies to some clients only, so that one of several
// loses its lock. [Server] has the faults of the server itself:
//
//	the server is killed, loses power, comes back      Stop, Crash, Restart
//	the server pauses                                  Pause, Resume
//	its disk is full, or fails                         FillDisk, FailDisk, RepairDisk
//	the sequence numbers come near their limit         JumpSequence
//
// # What to test
//
// A program that holds a lock must stop its work when it loses the lock, before another
// client acquires it. There are two ways to lose a lock, and a test for each:
//
//   - The session ends at the server: [Relay.ExpireSession]. The client learns of it at
//     once, and the program must stop: see the example LostLock.
//   - The network is cut: [Relay.Partition]. The client receives nothing, and its own clock
//     ends the hold before the server grants the lock to another client. In a bubble, such
//     a test takes no real time: see the example Bubble.
//
// Also test a lost reply: [Relay.DropReply] with "create", the create of an acquire, and
// with "delete", the delete of a release. "delete" also matches a multi that deletes, which a
// release sends if its hold had waited. "create" matches no multi, which a client sends for
// several acquires of the same moment: use "multi" for these.
//
// # In a bubble
//
// Start the server, dial, and close within the bubble that synctest.Test creates. ListenTCP
// and NewProxy fail in bubbles. The pings of clients advance the bubble's clock. The
// clock stands still while the server processes requests.
//
// Without a *testing.T, in TestMain or an example, use [New].
package zktest
