// Package queue decides which acquire holds a lock. It is the client side of
// ZooKeeper's recipe of a queue of ephemeral sequential znodes, as a step function.
// It implements mutexes, read-write locks, several locks in one transaction,
// semaphores in Curator's layout, and locks that are one znode; see [Spec].
//
// A [Core] belongs to one client and has no goroutine, clock or socket. Its inputs
// are calls (Acquire, Cancel, Release, Guard), what the session reads (Reply, Event,
// Session, Drained) and the time (Tick). Each input carries the time at which it was
// seen. Take returns the outputs: requests to send in order, and signals (granted,
// failed, lost, released). The same inputs always give the same outputs, so one
// thread can simulate many clients and replay a history from its seed.
//
// # Invariants
//
//   - An acquire is granted only if a listing that was read after its own create,
//     without the entries deleted since, shows no blocker; its own znode is not known
//     to be gone; and the session's deadline is ahead by a margin.
//   - The deadline lies before the first moment at which the ensemble may expire the
//     session (see [Deadline]). When it passes, the holds are lost for good.
//   - Each znode whose create was sent belongs to an acquire, or it is a pending
//     delete: the core deletes it until it is proven gone or its session has ended. No
//     znode is forgotten because a context ended or a connection was lost.
//   - The GUID in its name identifies a znode. It is used for one create only, so a
//     delete by name cannot hit another znode. If another client has copied the GUID, the
//     owner tells which znode is the client's. If the layout has no room for a GUID,
//     the czxid identifies the znode or, until that is known, its session and the id in
//     its data. Such a znode is read before its delete is repeated.
//   - An acquire of several positions holds all of them or none: losing one ends the
//     hold, or the acquire starts again. Positions created in one transaction wait only
//     for smaller zxids, so such acquires cannot deadlock. Semaphores follow them, in
//     one order.
//   - A downgrade replaces the writer's entry with a reader's entry of the same number
//     in one transaction. A waiter that sees a writer's entry deleted lists again.
package queue
