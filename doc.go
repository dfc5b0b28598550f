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
// # Kinds of locks
//
//   - [Client.Mutex]: one holds, in order of arrival.
//   - [Client.RWMutex]: readers share, a writer holds alone; [Hold.Downgrade].
//   - [Client.Semaphore]: n hold, and one hold may have several permits.
//   - [All]: several locks at once, without deadlocks among Alls.
//   - [Client.NodeLock]: one znode, for sharing with programs that lock so.
//   - [Lock.Reentrant]: for callers who may hold the lock already.
//
// All are a [Lock] and give a [Hold]. A leader election is a mutex that is held
// while one leads.
//
// # The promise
//
// While a hold's [Hold.Err] returns nil, no other client's hold is in conflict with
// it: the hold says that it is lost before the ensemble can give the lock to somebody
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
// Where the resource is in ZooKeeper itself, [Hold.Guard] makes the write depend on
// the lock in one transaction.
//
// # With others
//
// Locks are written in the layouts of Apache Curator's recipes, so that Java's
// Curator, go-zookeeper, ZooKeeper's own WriteLock, and kazoo's Lock made with
// extra_lock_patterns=["-lock-"] exclude each other with this package's. Waiting
// is in order of arrival. [Options].Layout has other names: kazoo's, both at once,
// WriteLock's, or one's own. [Lock.Inspect] shows all of them, and [Lock.Revoke] asks holders of
// this package and of Curator's revocable mutex for the lock back.
package zklock
