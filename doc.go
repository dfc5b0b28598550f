// Package zklock is distributed locks on Apache ZooKeeper.
//
// A [Lock] is a name; a [Hold] is possession of it. Dial a client, name a lock,
// acquire a hold, and look at the hold before acting:
//
//	c, err := zklock.Dial(ctx, "zk1:2181,zk2:2181,zk3:2181", nil)
//	...
//	hold, err := c.Mutex("reports/nightly").Acquire(ctx)
//	...
//	defer hold.Release(ctx)
//	work(hold.Token())
//
// or let [Do] do all of it.
//
// # The promise
//
// While a hold's [Hold.Err] returns nil, no other client holds the lock: the
// hold says that it is lost before the ensemble can give the lock to somebody
// else, by a deadline that the client counts on its own clock, from requests
// that a quorum of the servers is known to have answered. After a pause of the
// process or a suspend of the machine, the first look already says lost.
//
// # The promise's limit
//
// A process can be paused between its look at the hold and its act. No lock
// service can prevent that. [Hold.Token] covers it: a number that grows with
// every grant of the lock, for the resource to refuse whoever comes with a
// smaller one than it has seen.
//
// # With others
//
// Locks are written in the layout of Apache Curator's InterProcessMutex, so
// that Java's Curator, go-zookeeper, and kazoo's Lock made with
// extra_lock_patterns=["-lock-"] exclude each other with this package's. Waiting
// is in order of arrival.
package zklock
