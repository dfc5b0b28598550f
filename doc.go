// Package zklock provides distributed locks on Apache ZooKeeper.
//
// A [Lock] names a lock; a [Hold] is an acquired lock. Dial a client, name a lock, and use [Do],
// which acquires the lock, calls a function, and releases the lock:
//
//	c, err := zklock.Dial(ctx, "zk1:2181,zk2:2181,zk3:2181", nil)
//	...
//	lock := c.Mutex("reports/nightly")
//	err = zklock.Do(ctx, lock, func(ctx context.Context, h *zklock.Hold) error {
//		return work(ctx, h) // checks h.Err before each step, and sends h.Token with each write
//	})
//
// Without Do, use [Lock.Acquire] and [Hold.Release], whose error reports a loss of the hold.
//
// # Kinds of locks
//
//   - [Client.Mutex]: one holder, in order of arrival.
//   - [Client.RWMutex]: any number of readers ([RWMutex.Reader]), or one writer
//     ([RWMutex.Writer]). [Hold.Downgrade] makes a writer a reader.
//   - [Client.Semaphore]: n holders, and a hold can have several permits.
//   - [Client.ResizableSemaphore]: the same, with a number that [Client.Resize] changes.
//   - [All]: several locks at once; two Alls cannot deadlock with each other.
//   - [Client.NodeLock]: one holder; the lock is a single znode. Use it to share locks with
//     programs that lock this way.
//   - [Lock.Reentrant]: for callers that may already hold the lock.
//
// Each of them provides a [Lock], whose acquire returns a [Hold]. For a leader election, use
// a mutex that the leader holds while it leads.
//
// # The guarantee
//
// While [Hold.Err] returns nil, no hold of another client conflicts with the hold. The
// hold reports its loss before the ensemble can grant the lock to another client. For
// this, the client computes a deadline on its own clock from requests that a quorum of the
// servers answered. After a pause of the process or, on Linux, a suspend of the machine, the
// first call to Err reports the loss. This requires that the rates of the clients' and the
// servers' clocks differ by at most [Options].ClockDrift; GUARANTEES.md in the repository lists
// all assumptions.
//
// # The limit of the guarantee
//
// A process can be paused between checking the hold and acting on it. No lock service can
// prevent that. Use [Hold.Token] as a fencing token: the token grows with each grant of the
// lock, and the resource rejects any smaller token than the largest it has seen.
//
// If the resource is in ZooKeeper itself, [Hold.Guard] makes the write depend on the lock in
// one transaction.
//
// # Interoperability
//
// By default, locks use the znodes of Apache Curator's recipes. So mutexes of this package
// and these locks exclude each other: Curator's InterProcessMutex, go-zookeeper's Lock,
// ZooKeeper's WriteLock, and kazoo's Lock created with extra_lock_patterns=["-lock-"]. Locks
// are granted in order of arrival.
// [Options].Layout selects other layouts: kazoo's, Curator's and kazoo's at once, WriteLock's,
// or a custom one. [Lock.Inspect] shows the entries of all of them. [Lock.Revoke] requests a
// release from holders of this package and of Curator's revocable mutex.
package zklock
