// Package session is the client's side of a ZooKeeper session as a step
// function: it has no goroutine, clock or socket. Whoever drives it puts in
// calls, frames and the time, and takes out bytes to write, connections to
// make, the moment of the next timer, and notices: answers, events and changes
// of state in the order in which a user must see them.
//
// Package zk drives it with goroutines and sockets; a simulation drives it in
// one thread and replays it from a seed: nothing here depends on anything but
// the inputs, their order and the injected random numbers.
//
// The rules it keeps:
//
//   - A call belongs to the session that was current when it was submitted. It
//     is answered there or fails, and never runs in a later session.
//   - Answers come in the order of the requests. Anything else is a protocol
//     error, after which the connection is not to be trusted.
//   - A new connection begins with SASL, if that is wanted, and nothing else is
//     sent until both sides have proved themselves. Then come credentials, then
//     the watches that are to be set again, then the calls that wait: no answer
//     overtakes an event.
//   - Every failure says whether the request may have been applied.
//   - What a peer sends costs at most its own size and never panics.
//
// All times are readings of one clock that runs on through suspend, see
// package boottime.
package session
