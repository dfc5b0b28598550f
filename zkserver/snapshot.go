package zkserver

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/metrics"
	"slices"
	"time"

	"github.com/zklock/zklock/internal/tree"
	"github.com/zklock/zklock/internal/wal"
)

// snapshotJob is a running snapshot.
type snapshotJob struct {
	cancel  chan struct{} // closed to cancel the snapshot
	done    chan struct{} // closed when the snapshot has ended
	records int           // in the log since the previous snapshot
	bytes   int64         // in the log since the previous snapshot
}

// cancelPiece is how many bytes of a state in memory are written before the next check whether
// the snapshot was canceled.
const cancelPiece = 1 << 20

// snapshotRetry is the delay after a snapshot failed because no descriptor was free.
const snapshotRetry = 10 * time.Second

// maybeSnapshot starts a snapshot when the log has grown enough since the last one. The
// snapshot is made from the files, with its own tree, on a goroutine that ends when the
// snapshot is written, has failed, or is canceled; Close waits for it. The loop continues
// meanwhile.
func (s *Server) maybeSnapshot() {
	l := &s.loop
	if l.log == nil || l.snapshot != nil || l.tree.ReadOnly() || l.snapshotRecords < s.opts.SnapshotRecords && l.snapshotBytes < s.opts.SnapshotBytes {
		return
	}
	if s.elapsed() < l.snapshotNotBefore {
		return
	}
	sv := &snapshotJob{cancel: make(chan struct{}), done: make(chan struct{}), records: l.snapshotRecords, bytes: l.snapshotBytes}
	l.snapshotRecords, l.snapshotBytes = 0, 0
	l.snapshot = sv
	index, log := l.durableIndex, l.log
	s.handlers.Add(1)
	go func() {
		defer s.handlers.Done()
		began := s.elapsed()
		err := s.snapshotFromLog(log, index, sv.cancel)
		if errors.Is(err, wal.ErrUnreadable) && !wal.OutOfDescriptors(err) {
			s.log.Error("the previous snapshot or the log cannot be read back; writing a snapshot of the state in memory instead: check the disk",
				"dir", s.opts.DataDir, "error", err)
			err = s.snapshotFromMemory(log, sv.cancel)
		}
		close(sv.done)
		s.runOnLoop(func() { s.snapshotDone(sv, began, err) })
	}()
}

// snapshotDone processes the result of a snapshot, on the loop's goroutine.
func (s *Server) snapshotDone(sv *snapshotJob, began time.Duration, err error) {
	l, now := &s.loop, s.elapsed()
	l.snapshot = nil
	switch err = s.unlessWritten(err); {
	case err == nil:
		s.count.snapshotsWritten.Add(1)
		l.snapshots.add(now-began, now)
	case wal.OutOfDescriptors(err):
		s.count.snapshotsFailed.Add(1)
		l.snapshotNotBefore, l.snapshotRecords, l.snapshotBytes = now+snapshotRetry, l.snapshotRecords+sv.records, l.snapshotBytes+sv.bytes
		s.log.Warn("cannot write a snapshot for want of file descriptors, will retry; if this continues, raise the limit of open files",
			"dir", s.opts.DataDir, "error", err, "delay", snapshotRetry)
	case !errors.Is(err, wal.ErrCanceled):
		s.count.snapshotsFailed.Add(1)
		s.log.Warn("cannot write a snapshot; the log grows until one succeeds", "dir", s.opts.DataDir, "error", err)
	}
	// A directory that could not be synced, or that another server now uses, also fails the
	// log: the next write would find this out anyway.
	if err := l.log.Err(); err != nil && !l.tree.ReadOnly() {
		s.storageFailed(err)
	}
}

// unlessWritten returns the error of a snapshot, or nil if the snapshot is written. It logs that
// old files are left.
func (s *Server) unlessWritten(err error) error {
	if !errors.Is(err, wal.ErrNotRemoved) {
		return err
	}
	s.log.Warn("old files of the log could not be removed; the next snapshot tries again",
		"dir", s.opts.DataDir, "error", err)
	return nil
}

// snapshotFromLog writes a snapshot from the files, up to a record: it replays the previous
// snapshot and the log after it. It reads the new snapshot back, which must give the same
// state. Until it returns it takes as much memory as a second copy of the state.
func (s *Server) snapshotFromLog(log *wal.Log, index uint64, cancel <-chan struct{}) error {
	cfg := s.treeConfig()
	pace := &snapshotPace{cancel: cancel, collects: true}
	var hash [sha256.Size]byte
	write := func(past *wal.Recovered, w io.Writer) error {
		t := tree.New(cfg)
		if err := replay(t, past, pace, nil); err != nil {
			if errors.Is(err, wal.ErrCanceled) {
				return err
			}
			return fmt.Errorf("%w: %w", wal.ErrUnreadable, err)
		}
		h := sha256.New()
		err := t.WriteSnapshot(pacedWriter{io.MultiWriter(h, w), pace})
		if err == nil {
			runtime.GC() // t is garbage now, and reading the snapshot back takes long
			h.Sum(hash[:0])
		}
		return err
	}
	return log.SnapshotFromFiles(index, cancel, write, func(r io.Reader, size int64) error {
		return checkSnapshot(cfg, r, size, hash, pace)
	})
}

// checkSnapshot returns an error unless the snapshot restores the state with the hash.
func checkSnapshot(cfg tree.Config, r io.Reader, size int64, hash [sha256.Size]byte, pace *snapshotPace) error {
	t := tree.New(cfg)
	if err := restore(t, r, size, pace); err != nil {
		return err
	}
	h := sha256.New()
	if err := t.WriteSnapshot(pacedWriter{h, pace}); err != nil {
		return err
	}
	if [sha256.Size]byte(h.Sum(nil)) != hash {
		return errors.New("zkserver: the snapshot restores a different state than the one it was made from")
	}
	return nil
}

// snapshotFromMemory writes a snapshot of the state in memory, which blocks the loop while
// it encodes the state. It starts a new segment of the log after it, so that no start reads
// the damaged part.
func (s *Server) snapshotFromMemory(log *wal.Log, cancel <-chan struct{}) error {
	type memoryState struct {
		index uint64
		state []byte
		err   error
	}
	now := make(chan memoryState, 1) // the loop does not wait for this goroutine
	s.postToLoop(func() {
		m := memoryState{index: s.loop.lastIndex}
		if s.memoryIsDurable() {
			m.state, m.err = s.loop.tree.AppendSnapshot(nil), log.Rotate()
		} else {
			m.err = wal.ErrCanceled
		}
		now <- m
	})
	select {
	case m := <-now:
		if m.err != nil {
			return m.err
		}
		return log.Snapshot(m.index, cancel, func(w io.Writer) error {
			w = pacedWriter{w, &snapshotPace{cancel: cancel, collects: true}}
			for piece := range slices.Chunk(m.state, cancelPiece) {
				if _, err := w.Write(piece); err != nil {
					return err
				}
			}
			return nil
		})
	case <-cancel: // closed by the loop, which waits for this goroutine
		return wal.ErrCanceled
	}
}

// memoryIsDurable reports whether the tree has no changes beyond the last durable record.
func (s *Server) memoryIsDurable() bool {
	l := &s.loop
	return len(l.out.Records) == 0 && l.durableIndex >= l.lastIndex && !l.diverged && !l.tree.ReadOnly()
}

// isClosed reports whether a channel that carries nothing is closed.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// restore sets a new tree to the state of a snapshot.
func restore(t *tree.Tree, r io.Reader, size int64, pace *snapshotPace) error {
	return t.Restore(pacedReader{r, pace}, size)
}

// replay sets a new tree to the state at the end of the recovered files. If count is not
// nil, replay calls it with the size of each record.
func replay(t *tree.Tree, found *wal.Recovered, pace *snapshotPace, count func(size int)) error {
	return found.Replay(func(r io.Reader, size int64) error { return restore(t, r, size, pace) }, func(index uint64, rec []byte) error {
		if err := pace.step(len(rec)); err != nil {
			return err
		}
		if count != nil {
			count(len(rec))
		}
		if err := t.Replay(rec); err != nil {
			return fmt.Errorf("record %d: %w", index, err)
		}
		return nil
	})
}

// snapshotPace lets a snapshot be canceled while it builds or writes a state, and starts garbage
// collections early if the loop runs meanwhile. The nil snapshotPace does neither.
type snapshotPace struct {
	cancel   <-chan struct{}
	collects bool
	bytes    int // since the last call of collectEarly
}

// step is called with the size of each part that is read or written. It returns an error if the
// snapshot is canceled.
func (p *snapshotPace) step(size int) error {
	if p == nil {
		return nil
	}
	if isClosed(p.cancel) {
		return wal.ErrCanceled
	}
	if p.bytes += size; p.collects && p.bytes >= paceBytes {
		p.bytes = 0
		collectEarly()
	}
	return nil
}

const (
	// paceBytes is how many bytes are read or written between two calls of collectEarly.
	paceBytes = 1 << 20
	// minGarbage is the growth of the heap below which collectEarly does nothing.
	minGarbage = 16 << 20
)

// collectEarly starts a garbage collection, and waits for its end, if the heap has grown
// halfway to the size at which the runtime would start one.
//
// The runtime starts a collection so late that it ends in time if the program allocates as fast
// as before. A snapshot suddenly allocates much faster. Then each goroutine that allocates has to
// do a large part of the collection first, and the loop stands still: for 0.1 s and more with a
// million nodes. During an early collection, the snapshot does nothing, and the loop may allocate
// half of the growth.
func collectEarly() {
	samples := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/gc/heap/live:bytes"}, {Name: "/gc/heap/goal:bytes"},
	}
	metrics.Read(samples)
	used, live, goal := samples[0].Value.Uint64(), samples[1].Value.Uint64(), samples[2].Value.Uint64()
	if used > live+max(minGarbage, (goal-min(live, goal))/2) {
		runtime.GC()
	}
}

// pacedWriter calls step before each write.
type pacedWriter struct {
	io.Writer
	pace *snapshotPace
}

// Write implements io.Writer.
func (w pacedWriter) Write(b []byte) (int, error) {
	if err := w.pace.step(len(b)); err != nil {
		return 0, err
	}
	return w.Writer.Write(b)
}

// pacedReader calls step before each read.
type pacedReader struct {
	io.Reader
	pace *snapshotPace
}

// Read implements io.Reader.
func (r pacedReader) Read(b []byte) (int, error) {
	if err := r.pace.step(len(b)); err != nil {
		return 0, err
	}
	return r.Reader.Read(b)
}

// cancelSnapshot cancels a running snapshot and waits for its end.
func (s *Server) cancelSnapshot() {
	if sv := s.loop.snapshot; sv != nil {
		close(sv.cancel)
		<-sv.done
		s.loop.snapshot = nil
	}
}

// closeStorage releases the data directory. On a graceful end it first writes a snapshot
// from memory, unless Close is called: no client waits for an answer any more.
func (s *Server) closeStorage() {
	l := &s.loop
	if l.log == nil {
		return
	}
	close(s.syncs)
	records := l.snapshotRecords
	if l.snapshot != nil {
		records = max(records, 1)
	}
	s.cancelSnapshot()
	s.mu.Lock()
	graceful, failed := s.graceful, s.err != nil
	s.mu.Unlock()
	if graceful && records > 0 && !failed && s.memoryIsDurable() {
		err := l.log.Snapshot(l.lastIndex, s.closing, func(w io.Writer) error {
			return l.tree.WriteSnapshot(pacedWriter{w, &snapshotPace{cancel: s.closing}})
		})
		if err = s.unlessWritten(err); err != nil && !errors.Is(err, wal.ErrCanceled) {
			s.count.snapshotsFailed.Add(1)
			s.log.Warn("cannot write a snapshot at the end; the next start reads the log instead",
				"dir", s.opts.DataDir, "error", err)
		}
	}
	if err := l.log.Close(); err != nil && !failed {
		s.log.Error("cannot close the log; acknowledged changes are on disk", "dir", s.opts.DataDir, "error", err)
	}
}
