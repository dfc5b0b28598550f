// Package kinds tests every kind of lock against what the kind promises.
//
// One after the other: rapid draws commands, they are carried out against a
// server in a testing/synctest bubble, and after each of them all goroutines
// come to rest. Then exactly those acquires must have been granted that a
// sequential model, the [World], says. Where the outcome is open by right, as
// with the waiters of a node lock, there are several worlds, and one of them
// must be the one that is seen.
//
// At the same time: several clients take, try, enter again, downgrade, give up
// and release while connections are cut, replies are lost, sessions are ended
// and servers are restarted, and what they wrote down is judged by package
// history, on the embedded server as well as on Apache ZooKeeper.
//
// After each run nothing may be left below the locks' paths but parents.
package kinds
