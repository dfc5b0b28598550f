package wal

import (
	"fmt"
	"slices"
)

// View hands what the log holds up to record index over to read, as Open
// would find it: a snapshot that is sound, and the records after it. It reads the
// files alone and may run beside Append and Sync, also on a log that takes no
// more writes; it waits for a Snapshot that is under way, and none begins until
// read has returned. Errors: those of read; ErrSnapshotIndex for an index that is
// not durable; ErrClosed.
func (l *Log) View(index uint64, read func(past *Recovered) error) error {
	l.mu.Lock()
	for l.snapshotting {
		l.cond.Wait()
	}
	if l.closing || l.err == ErrClosed {
		l.mu.Unlock()
		return ErrClosed
	}
	// The role of whoever writes snapshots, who alone removes files.
	l.snapshotting = true
	l.mu.Unlock()
	past, err := l.past(index)
	if err == nil {
		err = read(past)
	}
	l.mu.Lock()
	l.snapshotting = false
	l.cond.Broadcast()
	l.mu.Unlock()
	return err
}

// past finds what the log holds up to record index. The caller has the role of
// whoever writes snapshots, and keeps it while it reads.
func (l *Log) past(index uint64) (*Recovered, error) {
	l.mu.Lock()
	durable := l.durable
	segments, snapshots := slices.Clone(l.segments), slices.Clone(l.snapshots)
	l.mu.Unlock()
	if index > durable {
		return nil, fmt.Errorf("%w: record %d is not durable, the last one is %d", ErrSnapshotIndex, index, durable)
	}
	r := recovery{
		fs: l.fs, dir: l.dir, opts: l.opts, segments: segments,
		snapshots: slices.DeleteFunc(snapshots, func(s uint64) bool { return s > index }),
		rec:       &Recovered{fs: l.fs, dir: l.dir, LastIndex: index},
	}
	// Sound when it was written or opened is not sound now.
	if err := r.chooseSnapshot(); err != nil {
		return nil, err
	}
	start := r.rec.SnapshotIndex + 1
	if first := segments[0].first; first > start {
		return nil, r.gap(fmt.Sprintf("the log begins with record %d, but record %d is needed", first, start), start, first-1)
	}
	for i, seg := range segments {
		// Each reaches up to the next one's begin.
		if seg.first <= index && (i+1 == len(segments) || segments[i+1].first > start) {
			r.rec.segments = append(r.rec.segments, seg.first)
		}
	}
	return r.rec, nil
}
