package wal

import (
	"fmt"
	"slices"
)

// View calls read with the content of the log up to record index, as Open would find
// it: a valid snapshot and the records after it. It only reads files and may run
// concurrently with Append and Sync, also on a poisoned log. It waits for a Snapshot
// in progress, and no Snapshot begins until read has returned. It returns the error
// of read, ErrSnapshotIndex for an index that is not durable, or ErrClosed.
func (l *Log) View(index uint64, read func(past *Recovered) error) error {
	l.mu.Lock()
	for l.snapshotting {
		l.cond.Wait()
	}
	if l.closing || l.err == ErrClosed {
		l.mu.Unlock()
		return ErrClosed
	}
	// Only the goroutine that sets snapshotting removes files.
	l.snapshotting = true
	l.mu.Unlock()
	past, err := l.recoveredAt(index, nil)
	if err == nil {
		err = read(past)
	}
	l.endSnapshot()
	return err
}

// recoveredAt returns the content of the log up to record index. The caller has set
// snapshotting, and keeps it set while it reads.
func (l *Log) recoveredAt(index uint64, cancel <-chan struct{}) (*Recovered, error) {
	l.mu.Lock()
	durable := l.durable
	segments, snapshots := slices.Clone(l.segments), slices.Clone(l.snapshots)
	l.mu.Unlock()
	if index > durable {
		return nil, fmt.Errorf("%w: record %d is not durable, the last one is %d", ErrSnapshotIndex, index, durable)
	}
	r := recovery{
		fs: l.fs, dir: l.dir, opts: l.opts, seed: l.seed, segments: segments,
		snapshots: slices.DeleteFunc(snapshots, func(s uint64) bool { return s > index }),
		rec:       &Recovered{fs: l.fs, dir: l.dir, LastIndex: index},
	}
	// A snapshot that was valid when it was written or opened may be damaged now.
	if err := r.chooseSnapshot(cancel); err != nil {
		return nil, err
	}
	start := r.rec.SnapshotIndex + 1
	if first := segments[0].first; first > start {
		return nil, r.incomplete(first, start)
	}
	for i, seg := range segments {
		// Each segment extends to the beginning of the next one.
		if seg.first <= index && (i+1 == len(segments) || segments[i+1].first > start) {
			r.rec.segments = append(r.rec.segments, seg.first)
		}
	}
	return r.rec, nil
}

// incomplete returns the error for a log that begins too late for the snapshots that can be
// read. Unlike the error of Open it does not say that changes are lost: they may be in the
// memory of this process.
func (r *recovery) incomplete(first, start uint64) error {
	err := fmt.Errorf("wal: %s: %w: the log begins with record %d, but record %d is needed", r.dir, ErrCorrupt, first, start)
	for _, cause := range r.rec.BadSnapshots {
		err = fmt.Errorf("%w; %w", err, cause)
	}
	return err
}
