// Package queue decides who holds a lock: the client's side of ZooKeeper's
// queue-of-ephemeral-sequential-znodes recipe, as a step function. It knows
// mutexes, readers and writers, several of them joined in one transaction,
// semaphores in Curator's layout, and locks that are one znode; see [Spec].
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
//     used again, so deleting by name can't hit another's. Where the name has no
//     room for one, it is known by its czxid or, while that is unknown, by its
//     session and the id in its data, and it is read before a delete is repeated.
//   - A claim of several places holds all of them or none: losing one ends the
//     hold, or makes the claim begin anew. Places that were joined in one
//     transaction wait only for smaller zxids, so that such claims can't wait for
//     each other in a circle; semaphores come after them, in one order.
//   - A downgrade puts the reader's entry, with the writer's own number, in the
//     place of the writer's in one transaction, and whoever sees a writer's entry
//     go lists again.
package queue
