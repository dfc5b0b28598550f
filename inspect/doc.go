// Package inspect finds the locks below a path of ZooKeeper's tree, returns their holders
// and waiters, and keeps the list current, for tools that show locks. It recognizes the
// entries of zklock, Curator, kazoo, go-zookeeper, and ZooKeeper's own recipes.
// The commands zklock ls, show, top, doctor, break, and gc use it, and so does the page
// of package zkui.
//
// # Tour
//
//   - A [Reader] reads on demand: [Reader.Read] returns one [Lock], [Reader.List] all
//     locks below a prefix, and [Reader.Revoke] sends release requests to holders.
//   - A [Watcher] lists all locks once and then follows them with one recursive watch.
//     [Watcher.Snapshot] returns the current list, [Watcher.Changed] announces the next
//     one, and [Watcher.History] has grants, losses, and times of waits and holds, which
//     no server stores.
//   - A [Lock] has its entries in order: holders, waiters, strays. [Lock.View],
//     [Lock.Summary], and [Entry.View] return their JSON forms, and [Recipe] says which
//     library created an entry. Lock.Warnings describes entries that do not exclude each
//     other.
//   - [Deadlocks] finds sessions that wait for each other in a cycle.
//   - [Break] deletes the hold with a given fencing token, and no other.
//   - A [Collector] finds and removes the empty parents that locks leave behind.
//   - [ServerTime] returns the time of the ensemble's leader.
//
// The zero values of [WatchOptions] and [ListOptions] mean the documented defaults. The
// zero [zklock.Layout] means all layouts that zklock has names for. A zero time or number
// in a [Lock], an [Entry], or a [History] means unknown, or that it does not apply.
//
// Readers and watchers are safe for concurrent use. Locks and snapshots do not change
// after they were returned, and callers must not modify them, because they are shared.
//
// All texts and numbers from the servers may come from an attacker. Lists are limited in
// number and size, names of owners are cut to [MaxOwnerName] characters, and paths that
// no znode can have are reported. Other texts, such as paths and Entry.Data, are as they
// are on the servers: escape them before they reach a terminal or a page.
//
// # Cost for the ensemble
//
// A listing makes at most MaxReads reads of znodes that are not locks and MaxLockReads
// reads of locks: see [ListOptions]. If that is not enough, the result is incomplete, and
// Status.Complete is false. A listing visits znodes with few siblings first, so that a
// million znodes in one place do not hide locks in another. A watcher lists at its start and after
// a lost connection, with all entries, at most once per WatchOptions.RelistInterval. It repeats an
// interrupted listing after one second, then after two, and so on up to that interval. It also
// lists again if it had no room for new znodes, because clients created them faster than it reads,
// and after a late answer about a path below which there may be locks.
//
// While nothing happens below the prefix, a watcher reads nothing. A change of a lock
// costs one listing of its children, two more for a semaphore, and one read for each new
// entry. Changes within WatchOptions.Interval share a listing. Any other new znode costs
// one read, because it may be a node lock. If holds of a session end at the same time,
// their parents cost one read each, to find out whether the session ended. All reads
// outside of listings stay below WatchOptions.MaxReadRate. If more were necessary, the
// list lags behind, and Status.Pending counts the outdated locks.
//
// The servers send a watcher an event for each change below the prefix, also of znodes
// that are not locks. As all sessions of package zklock do, the session of a reader or
// watcher also sends a heartbeat at every eighth of its timeout.
package inspect
