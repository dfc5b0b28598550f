package zkserver

import (
	"bytes"
	"fmt"
	"io"
	"time"

	"github.com/zklock/zklock/internal/tree"
	"github.com/zklock/zklock/internal/wal"
)

// recoverTree makes the tree: a fresh one, or what the data directory holds.
func (s *Server) recoverTree() error {
	s.loop.tree = tree.New(s.treeConfig())
	if s.opts.DataDir != "" {
		if err := s.openLog(); err != nil {
			return err
		}
	}
	s.loop.tree.StartClocks(s.now())
	return nil
}

// treeConfig translates the options. A tree that begins empty takes its first
// transaction id from the wall clock, in units of a 2^20th of a millisecond,
// each about a nanosecond:
// more than any server before it can have used up. So tokens do not go back
// with a server in memory, or with a data directory that was lost, and clients
// that knew the old server are let in again. The units suffice until 2248.
func (s *Server) treeConfig() tree.Config {
	o := &s.opts
	c := tree.Config{
		Tick:              int32(o.TickTime.Milliseconds()),
		MinTimeout:        int32(o.MinSessionTimeout.Milliseconds()),
		MaxTimeout:        int32(o.MaxSessionTimeout.Milliseconds()),
		MaxFrame:          o.MaxFrame,
		InitialZxid:       s.start.UnixMilli()<<20 + int64(s.start.Nanosecond())%1e6<<20/1e6,
		SuperDigest:       o.SuperDigest,
		ExtendedTypes:     o.ExtendedTypes,
		ReconfigEnabled:   o.ReconfigEnabled,
		ContainerInterval: o.ContainerCheckInterval,
		Compat38:          o.Compat38,
	}
	o.setAuth(&c)
	return c
}

// openLog opens the data directory and brings the tree to the state in it.
func (s *Server) openLog() error {
	fsys, opts := s.opts.FS, wal.Options{}
	if fsys == nil {
		fsys = wal.OS{}
	} else {
		// Growing ahead is for disks; in memory it would cost megabytes.
		opts.Preallocate = -1
	}
	log, found, err := wal.Open(fsys, s.opts.DataDir, opts)
	if err != nil {
		return fmt.Errorf("zkserver: cannot use the data directory: %w", err)
	}
	if err := s.replay(found); err != nil {
		log.Close()
		return fmt.Errorf("zkserver: cannot recover from %s: %w; restore the directory from a copy, or move it away to start empty",
			s.opts.DataDir, err)
	}
	s.loop.log, s.loop.index = log, found.LastIndex
	s.reportRecovery(found)
	return nil
}

// replay brings the tree to the state at the end of the log.
func (s *Server) replay(found *wal.Recovered) error {
	restore := func(r io.Reader) error {
		b, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		return s.loop.tree.Restore(b)
	}
	return found.Replay(restore, func(index uint64, rec []byte) error {
		s.loop.records++
		s.loop.bytes += int64(len(rec))
		if err := s.loop.tree.Replay(rec); err != nil {
			return fmt.Errorf("record %d: %w", index, err)
		}
		return nil
	})
}

// reportRecovery logs what an operator should know about a start.
func (s *Server) reportRecovery(found *wal.Recovered) {
	for _, err := range found.BadSnapshots {
		s.log.Warn("a damaged snapshot was passed over; the log covers what it held", "error", err)
	}
	if found.Torn != nil {
		s.log.Warn("the log's end was unfinished, as after a crash; nothing acknowledged was in it", "torn", found.Torn.String())
	}
	s.log.Info("data directory opened", "dir", s.opts.DataDir, "snapshot", found.SnapshotIndex,
		"records", s.loop.records, "zxid", fmt.Sprintf("%#x", s.loop.tree.Zxid()), "took", s.elapsed().Round(time.Millisecond))
}

// commit makes the round's records durable: one write and one sync for all of
// them.
func (s *Server) commit() error {
	records := s.loop.out.Records
	if len(records) == 0 {
		return nil
	}
	if s.loop.log != nil {
		if err := s.appendSync(records); err != nil {
			return err
		}
	}
	clear(records)
	s.loop.out.Records = records[:0]
	return nil
}

func (s *Server) appendSync(records [][]byte) error {
	for _, rec := range records {
		index, err := s.loop.log.Append(rec)
		if err != nil {
			return err
		}
		s.loop.index = index
		s.loop.records++
		s.loop.bytes += int64(len(rec))
	}
	began := s.elapsed()
	err := s.loop.log.Sync()
	if now := s.elapsed(); err == nil {
		s.loop.fsync.add(now-began, now)
	}
	return err
}

// fail ends the server after a failure of the log. A sync that failed is never
// tried again: the kernel may have dropped the data and call the next one a
// success.
func (s *Server) fail(err error) {
	err = fmt.Errorf("%w in %s, nothing more is acknowledged: %w", ErrStorage, s.opts.DataDir, err)
	s.log.Error("the log cannot be written: all connections are closed; check the disk that holds the data directory, "+
		"then start the server again, which recovers all that was acknowledged", "dir", s.opts.DataDir, "error", err)
	s.end(err, false)
}

// maybeSnapshot begins a snapshot when the log has grown enough since the
// last. The state is encoded here, between two batches, and written by a
// goroutine of its own, so that a slow disk holds nobody up. That one ends when
// the snapshot is written; closing the log waits for it, and so does Close.
func (s *Server) maybeSnapshot() {
	l := &s.loop
	if l.log == nil || l.saving || l.records < s.opts.SnapshotRecords && l.bytes < s.opts.SnapshotBytes {
		return
	}
	l.saving, l.records, l.bytes = true, 0, 0
	index, state := l.index, l.tree.AppendSnapshot(nil)
	s.handlers.Add(1)
	go func() {
		defer s.handlers.Done()
		err := s.saveSnapshot(index, state)
		s.ask(func() { l.saving = false })
		if err != nil {
			s.log.Warn("no snapshot could be written; the log grows until one can", "dir", s.opts.DataDir, "error", err)
		}
	}()
}

func (s *Server) saveSnapshot(index uint64, state []byte) error {
	return s.loop.log.Snapshot(index, func(w io.Writer) error {
		_, err := io.Copy(w, bytes.NewReader(state))
		return err
	})
}

// closeStorage gives the data directory up, after a last snapshot if the
// server ends in good order.
func (s *Server) closeStorage() {
	l := &s.loop
	if l.log == nil {
		return
	}
	s.mu.Lock()
	graceful, failed := s.graceful, s.err != nil
	s.mu.Unlock()
	if graceful && l.records > 0 && !l.saving {
		if err := s.saveSnapshot(l.index, l.tree.AppendSnapshot(nil)); err != nil {
			s.log.Warn("no snapshot could be written at the end; the next start reads the log instead",
				"dir", s.opts.DataDir, "error", err)
		}
	}
	if err := l.log.Close(); err != nil && !failed {
		s.log.Error("the log could not be closed in good order; what was acknowledged is on disk", "dir", s.opts.DataDir, "error", err)
	}
}
