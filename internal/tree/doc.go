// Package tree is the state machine of a one-node ZooKeeper server: znodes,
// sessions, watches, access control and every operation of Apache ZooKeeper's
// protocol, with the answers, error codes, Stats, transaction ids and order of
// events of ZooKeeper 3.8 and 3.9.
//
// A [Tree] has no clock, does no I/O and starts no goroutine. Bytes and the time
// go in, records to be made durable and frames to be sent come out:
//
//	Connect, Request, Disconnect, Tick  ->  Out{Records, Sends}
//
// The caller, one apply loop, makes Out.Records durable in their order before
// any of Out.Sends leaves the process, and sends in order. Several calls may
// share one Out, and one flush of the disk. The same calls with the same times
// and the same Config.Rand give the same bytes.
//
// The caller builds a Tree with [New] and calls [Tree.StartClocks] once. After a
// restart it gives the Tree the newest snapshot by [Tree.Restore] in between, and
// by [Tree.Replay] what was recorded after that.
//
// A write runs in two halves, as in Java's PrepRequestProcessor and DataTree: it
// is checked against the state and becomes a transaction that says what changes,
// not what was asked; then the transaction is applied. Replay applies the same
// transactions by the same code. A multi that fails was therefore never applied.
//
// What comes from outside can't make a Tree panic: malformed requests get
// ZooKeeper's answer, malformed records and snapshots an error.
package tree
