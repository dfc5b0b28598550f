package zkserver

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/zklock/zklock/internal/tree"
	"github.com/zklock/zklock/internal/wal"
)

// mostWait bounds the wait for descriptors with which the files can be read back.
const mostWait = 10 * time.Second

// loseStorage is what becomes of a server whose log takes no more. Nothing of
// the round was handed out, and nobody can know what of it a restart finds: every
// connection is cut, which is how clients learn that an outcome is unknown. The
// tree goes back to what is on disk for sure, up to the last record that was
// acknowledged, and answers reads from there. A sync that failed is never tried
// again: the kernel may have dropped the data and call the next one a success. If
// the files can't even be read, or another server may be writing to them, or the
// options want it so, the server ends.
func (s *Server) loseStorage(cause error) {
	l := &s.loop
	if l.syncing {
		l.syncing = false
		<-s.synced // whatever came of it, nobody will hear of it
	}
	err := fmt.Errorf("%w in %s, nothing more is acknowledged: %w", ErrStorage, s.opts.DataDir, cause)
	if s.storageError() != nil {
		// It ends already, or a read-only tree did what it must not.
		s.fail(err)
		return
	}
	s.count.storageErrors.Add(1)
	s.mu.Lock()
	s.storageErr = err
	s.mu.Unlock()
	s.cutAll()
	s.endSaving()
	if s.opts.EndOnStorageError || errors.Is(cause, wal.ErrLockLost) {
		s.fail(err)
		return
	}
	t, rerr := s.rebuild()
	for wait := 10 * time.Millisecond; wal.OutOfDescriptors(rerr) && wait < mostWait && s.sleep(wait); wait *= 2 {
		t, rerr = s.rebuild()
	}
	if rerr != nil {
		s.fail(fmt.Errorf("%w; what is on disk could not be read back either: %w", err, rerr))
		return
	}
	l.tree = t
	s.log.Error("the log cannot be written: the server is read-only from now on, at what was acknowledged; "+
		"check the disk that holds the data directory, free space on it or replace it, then restart the server",
		"dir", s.opts.DataDir, "error", err, "zxid", fmt.Sprintf("%#x", t.Zxid()))
}

// fail ends the server because of its storage. Its figures stay what they were
// before: the tree may have what nobody will ever see.
func (s *Server) fail(err error) {
	s.loop.lost = true
	if cancelled(s.stop) {
		return
	}
	s.log.Error("the log cannot be written: the server ends; check the disk that holds the data directory, "+
		"then start the server again, which recovers all that was acknowledged", "dir", s.opts.DataDir, "error", err)
	s.end(err, false)
}

// cutAll closes every connection and forgets all that was to be said to them. New
// ones may come.
func (s *Server) cutAll() {
	l := &s.loop
	s.mu.Lock()
	_, conns := s.everything()
	s.mu.Unlock()
	for _, c := range conns {
		c.ended = true
		c.abort(net.ErrClosed)
	}
	s.drop(&l.filling)
	s.drop(&l.flying)
	l.out.Reset()
}

// rebuild makes a read-only tree of the files, up to the last record that was
// made durable.
func (s *Server) rebuild() (*tree.Tree, error) {
	t := tree.New(s.treeConfig())
	err := s.loop.log.View(s.loop.log.Stats().DurableIndex, func(past *wal.Recovered) error {
		return replay(t, past, nil, nil)
	})
	if err != nil {
		return nil, err
	}
	t.SetReadOnly(s.loop.tree.Tallies())
	return t, nil
}

// storageError is why the server is read-only, nil if it is not.
func (s *Server) storageError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.storageErr
}
