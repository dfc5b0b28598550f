package zkserver

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"time"

	"github.com/zklock/zklock/internal/ownership"
	"github.com/zklock/zklock/internal/tree"
	"github.com/zklock/zklock/internal/wal"
)

// recoverTree creates the tree: empty, or with the state in the data directory.
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

// firstZxid returns the last transaction id of a tree that begins empty.
//
// With a data directory it returns 0, as in a new ZooKeeper: the log keeps ids increasing.
// An ensemble's ids begin at 2^32, so fencing tokens still increase when locks move from
// this server to an ensemble, until it has made four billion transactions.
//
// In memory it returns the wall clock in units of 1/1024 of a millisecond. So tokens
// increase across restarts, and clients of the earlier server may reconnect, unless that
// server made more than 1,024,000 transactions a second or the clock was set back. Until
// the year 2248 the ids stay below 2^53, so programs that read numbers as floating point,
// such as those in JavaScript, do not round them.
func (s *Server) firstZxid() int64 {
	if s.opts.DataDir != "" {
		return 0
	}
	return s.start.UnixMilli()<<10 + int64(s.start.Nanosecond())%1e6<<10/1e6
}

// treeConfig returns the tree's configuration.
func (s *Server) treeConfig() tree.Config {
	o := &s.opts
	c := tree.Config{
		Tick:              int32(o.TickTime.Milliseconds()),
		MinTimeout:        int32(o.MinSessionTimeout.Milliseconds()),
		MaxTimeout:        int32(o.MaxSessionTimeout.Milliseconds()),
		MaxFrame:          o.MaxFrame,
		InitialZxid:       s.firstZxid(),
		SuperDigest:       o.SuperDigest,
		ExtendedTypes:     o.ExtendedTypes,
		ReconfigEnabled:   o.ReconfigEnabled,
		EnforceQuota:      o.EnforceQuota,
		LongReply:         longAnswer,
		ContainerInterval: o.ContainerCheckInterval,
		NeverUsed:         o.ContainerNeverUsed.Milliseconds(),
	}
	o.setAuth(&c)
	o.setLimits(&c)
	return c
}

// openLog opens the data directory and replays its state into the tree.
func (s *Server) openLog() error {
	fsys, opts := s.opts.setup.FS, wal.Options{
		SegmentSize: s.opts.segmentBytes, KeepSnapshots: s.opts.SnapshotsKept, NoSync: s.opts.NoSync,
	}
	// The tree's records are at most twice as long as a request. The log may contain longer
	// ones than the current MaxFrame permits.
	opts.MaxRecord = 2 * largestMaxFrame
	if fsys == nil {
		fsys = wal.OS{}
		// The program may change its working directory.
		dir, err := filepath.Abs(s.opts.DataDir)
		if err != nil {
			return fmt.Errorf("zkserver: open the data directory %s: %w", s.opts.DataDir, err)
		}
		s.opts.DataDir = dir
	} else {
		// Preallocation helps on disks. In memory it would cost megabytes.
		opts.Preallocate = -1
	}
	if err := refuseZooKeeperDir(fsys, s.opts.DataDir); err != nil {
		return err
	}
	opts.Accept = s.accept
	log, found, err := wal.Open(fsys, s.opts.DataDir, opts)
	if err != nil {
		return fmt.Errorf("zkserver: open the data directory: %w", err)
	}
	s.loop.log, s.loop.lastIndex, s.loop.durableIndex = log, found.LastIndex, found.LastIndex
	s.loop.acknowledgedZxid = s.loop.tree.Zxid()
	s.reportRecovery(found)
	return nil
}

// accept replays what the data directory contains into the tree, and reports damage. Recovery
// changes no file before that. So a refused directory is unchanged, and the damage is reported even
// if the start then fails.
func (s *Server) accept(found *wal.Recovered) error {
	count := func(size int) {
		s.loop.snapshotRecords++
		s.loop.snapshotBytes += int64(size)
	}
	if err := replay(s.loop.tree, found, nil, count); err != nil {
		remedy := "; restore the directory from a copy, or move it away to start empty"
		switch {
		case wal.OutOfDescriptors(err):
			remedy = "; raise the limit of open files"
		case errors.Is(err, tree.ErrVersion):
			remedy = ""
		}
		return fmt.Errorf("recover from %s: %w%s", s.opts.DataDir, err, remedy)
	}
	for _, err := range found.BadSnapshots {
		s.log.Warn("a damaged snapshot was skipped; the log contains its state", "error", err)
	}
	if found.Torn != nil {
		s.log.Warn("the end of the log is incomplete, as after a crash; it contained nothing "+
			"acknowledged, unless the disk damaged it since",
			"torn", found.Torn.String())
	}
	return nil
}

// refuseZooKeeperDir rejects a directory with the data of an Apache ZooKeeper and without
// this server's: to start empty there would make every lock look free.
func refuseZooKeeperDir(fsys wal.FS, dir string) error {
	const zooKeeperData = "version-2"
	names, err := fsys.ReadDir(dir)
	if err != nil || !slices.Contains(names, zooKeeperData) {
		return nil // Open handles a directory that is missing or cannot be read
	}
	if slices.ContainsFunc(names, wal.IsSegment) {
		return nil
	}
	return fmt.Errorf("zkserver: %s contains the data of an Apache ZooKeeper, which this server cannot read: "+
		"use another directory, and copy the nodes with a client if you need them", filepath.Join(dir, zooKeeperData))
}

// reportRecovery logs what the operator should know about a start, except for damage.
func (s *Server) reportRecovery(found *wal.Recovered) {
	for _, err := range found.Ignored {
		s.log.Warn("cannot read or remove a file that is no longer needed: check the disk, "+
			"and which user created the file", "error", err)
	}
	if s.opts.setup.FS == nil {
		s.warnOfOtherUsers()
	}
	if s.opts.NoSync {
		s.log.Warn("the log is not synced: a power loss loses acknowledged changes, after which two clients can hold a lock; "+
			"remove the NoSync option (forceSync=no) unless the data may be lost", "dir", s.opts.DataDir)
	}
	s.log.Info("data directory opened", "dir", s.opts.DataDir, "snapshot", found.SnapshotIndex,
		"records", s.loop.snapshotRecords, "zxid", fmt.Sprintf("%#x", s.loop.tree.Zxid()), "took", s.elapsed().Round(time.Millisecond))
}

// warnOfOtherUsers logs what other users of this machine can do to the data directory.
func (s *Server) warnOfOtherUsers() {
	dir := s.opts.DataDir
	if ownership.GroupWritable(dir) {
		s.log.Warn("members of the data directory's group can replace its files, and thus take every lock; "+
			"run chmod g-w on it unless this is intended", "dir", dir)
	}
	if ownership.ReadableByAll(dir) {
		s.log.Warn("every user of this machine can lock the data directory, and so keep the server from starting again; "+
			"run chmod o-r on it", "dir", dir)
	}
	if err := ownership.CheckParents(dir); err != nil {
		s.log.Warn("another user could replace the data directory before the next start, and so reset all locks and fencing tokens",
			"dir", dir, "error", err)
	}
}

// appendRecords appends the round's records to the log, for the next sync.
func (s *Server) appendRecords() error {
	l := &s.loop
	records := l.out.Records
	if len(records) == 0 {
		return nil
	}
	if l.tree.ReadOnly() {
		return errReadOnlyWrote
	}
	if l.log != nil {
		for _, rec := range records {
			index, err := l.log.Append(rec)
			if err != nil {
				return err
			}
			l.lastIndex, l.filling.index, l.filling.zxid = index, index, l.tree.Zxid()
			l.snapshotRecords++
			l.snapshotBytes += int64(len(rec))
		}
	}
	clear(records)
	l.out.Records = records[:0]
	return nil
}

// maxDescriptorWait bounds the wait for descriptors to read the files back.
const maxDescriptorWait = 10 * time.Second

// storageFailed makes the server read-only, or ends it, after its log has failed. No output
// of the round has left, and it is unknown which of its changes a restart finds. So the
// server closes every connection, which tells the clients that outcomes are unknown. The
// tree returns to the durable state, up to the last acknowledged record, and answers reads
// from it.
//
// The server never retries a failed sync: the kernel may have dropped the data and report
// the next sync as a success. If the files cannot be read, if another process changed them or
// may be writing to them, or if the options say so, the server ends.
func (s *Server) storageFailed(cause error) {
	l := &s.loop
	if l.syncing {
		l.syncing = false
		<-s.synced // no client learns of the result
	}
	err := fmt.Errorf("%w in %s, no more changes are acknowledged: %w", ErrStorage, s.opts.DataDir, cause)
	if s.storageError() != nil {
		// The server is ending already, or a read-only tree made a record.
		s.endAfterStorageFailure(err)
		return
	}
	s.count.storageErrors.Add(1)
	s.mu.Lock()
	s.storageErr = err
	s.mu.Unlock()
	s.abortAll()
	s.cancelSnapshot()
	lost := errors.Is(cause, wal.ErrLockLost) || errors.Is(cause, wal.ErrFileChanged)
	if lost || s.opts.EndOnStorageError {
		s.endAfterStorageFailure(err)
		return
	}
	t, rerr := s.rebuildReadOnly()
	for wait := 10 * time.Millisecond; wal.OutOfDescriptors(rerr) && wait < maxDescriptorWait && s.sleepUnlessStopped(wait); wait *= 2 {
		t, rerr = s.rebuildReadOnly()
	}
	if rerr != nil {
		s.endAfterStorageFailure(fmt.Errorf("%w; the files could not be read back either: %w", err, rerr))
		return
	}
	l.tree = t
	s.log.Error("the log cannot be written: the server is read-only from now on, with the acknowledged state; "+
		"check the disk of the data directory, free space on it or replace it, then restart the server",
		"dir", s.opts.DataDir, "error", err, "zxid", fmt.Sprintf("%#x", t.Zxid()))
}

// endAfterStorageFailure ends the server because of its storage. The tree may contain changes
// that no client will see, so the figures of the tree stay as they were, except for the last
// transaction.
func (s *Server) endAfterStorageFailure(err error) {
	s.loop.diverged = true
	if isClosed(s.stop) {
		return
	}
	s.log.Error("the log cannot be written: the server ends", "dir", s.opts.DataDir, "error", err)
	s.end(err, false)
}

// abortAll closes every connection and drops all output. New connections are accepted.
func (s *Server) abortAll() {
	l := &s.loop
	for _, c := range s.liveConns() {
		c.phase = max(c.phase, connClosing)
		c.abort(net.ErrClosed)
	}
	s.discard(&l.filling)
	s.discard(&l.inFlight)
	l.out.Reset()
}

// rebuildReadOnly makes a read-only tree from the files, up to the last durable record.
func (s *Server) rebuildReadOnly() (*tree.Tree, error) {
	t := tree.New(s.treeConfig())
	err := s.loop.log.View(s.loop.log.Stats().DurableIndex, func(past *wal.Recovered) error {
		return replay(t, past, nil, nil)
	})
	if err != nil {
		return nil, err
	}
	t.SetReadOnly(s.loop.tree.Counters())
	return t, nil
}

// storageError returns why the server is read-only, or nil if it is not.
func (s *Server) storageError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.storageErr
}
