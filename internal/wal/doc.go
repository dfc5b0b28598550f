// Package wal is the durable log of the embedded server: opaque records in
// order, one fdatasync for each batch of them, snapshots, and recovery that
// never loses an acknowledged record without saying so.
//
// # Promise
//
// Once [Log.Sync] has returned nil, every record appended before the call is
// there after any crash, in order. A record that was not acknowledged is
// there or not, but never in part, and never without all before it. The
// records of one Sync are there all together or not at all.
//
// After a failed write or sync the log is poisoned: every later call gives
// the same error. What was acknowledged can still be read, by [Log.View]. A
// restart recovers.
//
// # Files
//
// A directory holds
//
//	lock                            locked by the process that has it open
//	log-00000000000000000001        segment, named by its first record's index
//	snapshot-00000000000000000042   state after record 42
//	*.tmp                           unfinished; removed at the next start
//
// Segments and snapshots get their final names when what they begin with is
// durable, so a segment header or a snapshot that is damaged is never what a
// crash left. docs/storage-format.md has the layout in bytes,
// version 1.
//
// # What recovery can and cannot tell
//
// One batch at most is not yet durable at any moment: the last one. So
// damage that has a sound batch header anywhere after it was durable once
// and is refused ([CorruptError]); damage with nothing sound after it, in
// the last segment, is what a crash leaves and is cut off ([Torn]).
// A seal, a batch with no records, is written when a log is opened and
// closed: from then on every batch before it has something sound after it. What
// remains, and no log without a second sync a batch can tell, is damage
// from outside in the very last batch after a crash: it looks torn.
package wal
