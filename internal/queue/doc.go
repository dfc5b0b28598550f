// Package queue decides who holds a lock: the client's side of ZooKeeper's
// queue-of-ephemeral-sequential-znodes recipe, as a step function.
//
// A [Core] belongs to one client and has no goroutine, clock or socket. Inputs
// are calls (Acquire, Cancel, Release, Verify), what the session reads (Reply,
// Event, Session, Drained) and the time (Tick). Each input carries the time at
// which it was seen; outputs are collected by Take: requests to send in order,
// and signals (granted, failed, lost, released). The same inputs always give
// the same outputs, so that one thread can simulate many clients and replay a
// history from its seed.
//
// # What must always hold
//
//   - A claim is granted only when a listing that was read after its own
//     create, less what was since seen to go, has nothing ahead that blocks
//     it; its own znode is not known to be gone; and the session's deadline is
//     ahead by a margin.
//   - The deadline lies before the first moment at which the ensemble may
//     expire the session (see [Deadline]). When it passes, holds are lost, and
//     none ever comes back.
//   - A znode that was asked for is either some claim's, or doomed: kept on a
//     list and deleted until it is proven gone or its session is over. Nothing
//     is ever forgotten because a context ended or a connection was lost.
//   - A znode is known by the GUID in its name, made for one create and never
//     used again, so deleting by name can't hit another's.
package queue
