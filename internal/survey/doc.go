// Package survey finds the locks below a path of ZooKeeper's tree, whoever wrote
// them, says what each is, and keeps them current.
//
// [Look] reads one lock and [Walk] all below a prefix, once. A [Survey] does so and
// then follows them by one recursive watch, so that an ensemble on which nothing
// happens is not asked anything. It keeps what no server keeps: when each lock was
// granted, how long it was waited for and held ([History]).
//
// # What it costs the ensemble
//
// A walk makes at most [Limits].Reads reads to look for locks and LockReads of locks
// and then stops; what it has found by then stays, and [Status].Complete is false. It
// goes first where there is little beside, so that a million znodes in one place do
// not hide locks in another. There is one at the start, and one after a lost
// connection, but never more than one in [Options].Rewalk. One that was
// interrupted is begun anew after a second, the next after two, and so on up to that.
//
// Afterwards an ensemble on which nothing happens below the prefix is not read. A
// change of a lock costs one listing, two more of a semaphore, and one read for each
// entry that came; an entry that leaves costs nothing besides. Changes of one lock
// within [Options].Settle share a listing. Any other znode that comes is looked at
// once, as it may be a lock of one znode; and where a session's holds end at one time, so
// are their locks, to learn whether the session ended. All reads outside of walks together keep
// below [Options].ReadRate a second, whatever happens; if more was necessary, what is
// shown lags behind, and [Status].Behind says by how many locks.
//
// Besides, the servers send an event for each change below the prefix, of locks or
// not, as long as the survey runs; and its session asks a quorum at every eighth of
// its timeout, as all sessions of package zklock do.
package survey
