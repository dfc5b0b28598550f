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
// A walk makes at most [Options].WalkReads reads and then stops; what it has found
// by then stays, and [Status].Complete is false. It goes first where there is
// little beside, so that a million znodes in one place do not hide locks in another.
//
// Afterwards a change of a lock costs one listing, and one read for each entry that
// came; an entry that leaves costs nothing besides the listing. Changes of one lock
// within [Options].Settle share a listing. All that a survey reads after its walk,
// for whatever reason, keeps below [Options].ReadRate a second; if more happens,
// what is shown lags behind, and [Status].Behind says by how many locks.
package survey
