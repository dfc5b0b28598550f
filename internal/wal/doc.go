// Package wal implements the durable log of the embedded server: opaque records in
// order, one fdatasync per batch of records, snapshots, and a recovery that never
// loses an acknowledged record without reporting it.
//
// # Guarantee
//
// Once [Log.Sync] has returned nil, every record that was appended before the call
// survives any crash, in order. A record that was not acknowledged may survive or
// not, but never partially, and never without all records before it. The records of
// one Sync survive together or not at all.
//
// After a failed write or sync the log is poisoned: every later call returns the same
// error. [Log.View] can still read what was acknowledged. A restart recovers.
//
// # Files
//
// A directory contains
//
//	lock                            locked by the process that has the log open
//	log-00000000000000000001        segment, named by the index of its first record
//	snapshot-00000000000000000042   state after record 42
//	*.tmp                           unfinished; removed at the next start if possible
//
// Segments and snapshots get their final names when their initial content is durable.
// So a damaged segment header or snapshot is never the result of a crash.
// docs/storage-format.md has the layout in bytes, version 1.
//
// # What recovery can detect
//
// At any moment, at most one batch is not durable: the last one. If a valid batch
// header follows damage, the damaged bytes were durable once, and Open refuses the
// log ([CorruptError]). Damage in the last segment with nothing valid after it is
// what a crash leaves; Open cuts it off ([Torn]).
//
// A seal is a batch without records. It is written when a log is opened and closed,
// so every batch before it has something valid after it. Two seals end a segment that
// another one follows, so a missing last segment is detected. One case remains: external
// damage in the very last batch after a crash looks like a torn batch. Only a second
// sync per batch could detect it.
package wal
