package zkserver

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/zklock/zklock/internal/tree"
	"github.com/zklock/zklock/internal/wal"
)

// saving is a snapshot that is being made.
type saving struct {
	cancel  chan struct{} // closed when it is not wanted any more
	done    chan struct{} // closed when nothing of it runs
	records int           // in the log since the one before
	bytes   int64         // in the log since the one before
}

// saveAgain is how long a snapshot waits that had no descriptor.
const saveAgain = 10 * time.Second

// errCancelled ends a snapshot that is not wanted any more.
var errCancelled = errors.New("zkserver: given up because the server ends or its storage failed")

// filesError says that the log could not be read back.
type filesError struct{ error }

// Unwrap gives the cause.
func (e filesError) Unwrap() error { return e.error }

// maybeSnapshot begins a snapshot when the log has grown enough since the
// last. It is made from the files alone, in a tree of its own, on a goroutine
// that ends when the snapshot is written, has failed or is cancelled; Close
// waits for that. The loop does not stop for it.
func (s *Server) maybeSnapshot() {
	l := &s.loop
	if l.log == nil || l.saving != nil || l.tree.ReadOnly() || l.records < s.opts.SnapshotRecords && l.bytes < s.opts.SnapshotBytes {
		return
	}
	if s.elapsed() < l.saveAt {
		return
	}
	sv := &saving{cancel: make(chan struct{}), done: make(chan struct{}), records: l.records, bytes: l.bytes}
	l.records, l.bytes = 0, 0
	l.saving = sv
	index, log := l.durable, l.log
	s.handlers.Add(1)
	go func() {
		defer s.handlers.Done()
		began := s.elapsed()
		err := s.snapshotPast(log, index, sv.cancel)
		if errors.As(err, new(filesError)) && !wal.OutOfDescriptors(err) {
			s.log.Error("the log on disk cannot be read back; a snapshot of what is in memory shall save it: check the disk",
				"dir", s.opts.DataDir, "error", err)
			err = s.snapshotLive(log, sv.cancel)
		}
		close(sv.done)
		s.ask(func() { s.saved(sv, began, err) })
	}()
}

// saved takes in, on the loop's goroutine, what came of a snapshot.
func (s *Server) saved(sv *saving, began time.Duration, err error) {
	l, now := &s.loop, s.elapsed()
	l.saving = nil
	switch {
	case err == nil:
		s.count.snapshotsWritten.Add(1)
		l.snapshots.add(now-began, now)
	case wal.OutOfDescriptors(err):
		s.count.snapshotsFailed.Add(1)
		l.saveAt, l.records, l.bytes = now+saveAgain, l.records+sv.records, l.bytes+sv.bytes
		s.log.Warn("no snapshot could be written for want of file descriptors, will try again; raise the limit of open files if this stays",
			"dir", s.opts.DataDir, "error", err, "delay", saveAgain)
	case !errors.Is(err, errCancelled):
		s.count.snapshotsFailed.Add(1)
		s.log.Warn("no snapshot could be written; the log grows until one can", "dir", s.opts.DataDir, "error", err)
	}
	// A directory that could not be synced, or is another server's by now,
	// ends the log too: the next write would only find that out.
	if err := l.log.Err(); err != nil && !l.tree.ReadOnly() {
		s.loseStorage(err)
	}
}

// snapshotPast writes a snapshot from what is on disk up to a record: the
// snapshot before it and the log behind that, replayed. What was written is read
// back and must give the same state. Until it has returned it takes as much memory
// as a second copy of the state and, for moments, that of a snapshot's bytes.
func (s *Server) snapshotPast(log *wal.Log, index uint64, cancel <-chan struct{}) error {
	cfg := s.treeConfig()
	var hash [sha256.Size]byte
	write := func(past *wal.Recovered, w io.Writer) error {
		t := tree.New(cfg)
		if err := replay(t, past, cancel, nil); err != nil {
			if errors.Is(err, errCancelled) {
				return err
			}
			return filesError{err}
		}
		h := sha256.New()
		err := t.WriteSnapshot(io.MultiWriter(h, cancelWriter{w, cancel}))
		h.Sum(hash[:0])
		return err
	}
	return log.SnapshotPast(index, write, func(r io.Reader) error { return checkSnapshot(cfg, r, hash) })
}

// checkSnapshot reports an error unless a snapshot gives the state of the hash.
func checkSnapshot(cfg tree.Config, r io.Reader, hash [sha256.Size]byte) error {
	t := tree.New(cfg)
	if err := restore(t, r); err != nil {
		return err
	}
	if t.Hash() != hash {
		return errors.New("zkserver: the snapshot gives another state than the one it was made of")
	}
	return nil
}

// snapshotLive writes a snapshot of the state in memory, which holds the loop up
// while that is encoded, and lets the log begin a new segment behind it: then no
// start reads what is damaged.
func (s *Server) snapshotLive(log *wal.Log, cancel <-chan struct{}) error {
	type moment struct {
		index uint64
		state []byte
		err   error
	}
	now := make(chan moment, 1) // the loop does not wait for whoever asked
	s.call(func() { now <- moment{s.loop.index, s.encodeLive(), log.Rotate()} })
	select {
	case m := <-now:
		if m.err != nil {
			return m.err
		}
		return saveState(log, m.index, m.state)
	case <-cancel: // by the loop, which waits for this goroutine
		return errCancelled
	}
}

// encodeLive is the state after the last record that is durable; nil if there is
// something in the tree beyond that.
func (s *Server) encodeLive() []byte {
	if l := &s.loop; len(l.out.Records) > 0 || l.durable < l.index || l.lost || l.tree.ReadOnly() {
		return nil
	}
	return s.loop.tree.AppendSnapshot(nil)
}

func saveState(log *wal.Log, index uint64, state []byte) error {
	if state == nil {
		return errCancelled
	}
	return log.Snapshot(index, func(w io.Writer) error {
		_, err := io.Copy(w, bytes.NewReader(state))
		return err
	})
}

// cancelWriter is a writer that can be told to stop.
type cancelWriter struct {
	io.Writer
	cancel <-chan struct{}
}

// Write implements io.Writer.
func (w cancelWriter) Write(p []byte) (int, error) {
	if cancelled(w.cancel) {
		return 0, errCancelled
	}
	return w.Writer.Write(p)
}

func cancelled(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// restore brings a new tree to the state of a snapshot.
func restore(t *tree.Tree, r io.Reader) error {
	b, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	return t.Restore(b)
}

// replay brings a new tree to the state at the end of what was found. count, if
// there is one, is told the size of each record.
func replay(t *tree.Tree, found *wal.Recovered, cancel <-chan struct{}, count func(size int)) error {
	return found.Replay(func(r io.Reader) error { return restore(t, r) }, func(index uint64, rec []byte) error {
		if cancelled(cancel) {
			return errCancelled
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

// endSaving ends the snapshot that is being made, if there is one, and waits for
// that.
func (s *Server) endSaving() {
	if sv := s.loop.saving; sv != nil {
		close(sv.cancel)
		<-sv.done
		s.loop.saving = nil
	}
}

// closeStorage gives the data directory up, after a last snapshot if the
// server ends in good order. That one is of the state in memory: nobody waits for
// an answer any more.
func (s *Server) closeStorage() {
	l := &s.loop
	if l.log == nil {
		return
	}
	close(s.syncs)
	records := l.records
	if l.saving != nil {
		records = max(records, 1)
	}
	s.endSaving()
	s.mu.Lock()
	graceful, failed := s.graceful, s.err != nil
	s.mu.Unlock()
	if graceful && records > 0 && !failed {
		if err := saveState(l.log, l.index, s.encodeLive()); err != nil && !errors.Is(err, errCancelled) {
			s.count.snapshotsFailed.Add(1)
			s.log.Warn("no snapshot could be written at the end; the next start reads the log instead",
				"dir", s.opts.DataDir, "error", err)
		}
	}
	if err := l.log.Close(); err != nil && !failed {
		s.log.Error("the log could not be closed in good order; what was acknowledged is on disk", "dir", s.opts.DataDir, "error", err)
	}
}
