// Package session implements the client side of a ZooKeeper session as a step
// function. It has no goroutine, clock, or socket. A driver passes in calls, frames,
// and the time. It takes out bytes to write, connections to make, the time of the
// next timer, and notices: answers, events, and state changes, in the order in which
// the user must see them.
//
// Package zk drives it with goroutines and sockets. The simulation drives it in one
// thread and replays it from a seed, because the result depends only on the inputs,
// their order, and the injected random numbers.
//
// The rules that it keeps:
//
//   - A call belongs to the session that was current when it was submitted. It is
//     answered in that session or fails, and never runs in a later session.
//   - Answers arrive in the order of the requests. Anything else is a protocol error,
//     after which the connection cannot be trusted.
//   - A new connection begins with SASL, if it is configured. Nothing else is sent
//     until both sides have proved their identity. Credentials follow, then the
//     watches to set again, then the queued calls. So no answer overtakes an event.
//   - Every failure says whether the request may have been applied.
//   - Input from a server costs at most its own size and never causes a panic.
//
// All times are readings of one clock that keeps running while the machine is
// suspended; see package boottime.
package session
