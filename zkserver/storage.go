package zkserver

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/zklock/zklock/internal/ownership"
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

// firstZxid returns the last transaction id of a tree that begins empty.
//
// With a data directory that is 0, as in a new ZooKeeper: the log keeps ids growing.
// An ensemble's ids begin at 2^32, so fencing tokens still grow when locks move from
// here to an ensemble, until this server has made four billion transactions.
//
// In memory it is the wall clock in units of a 1024th of a millisecond. So tokens
// grow across restarts, and clients that knew the earlier server may come back,
// unless that server made more than 1,024,000 transactions a second or the clock was
// set back. Until the year 2248 the ids stay below 2^53, so programs that read
// numbers as floating point, as JavaScript does, do not round them.
func (s *Server) firstZxid() int64 {
	if s.opts.DataDir != "" {
		return 0
	}
	return s.start.UnixMilli()<<10 + int64(s.start.Nanosecond())%1e6<<10/1e6
}

// treeConfig translates the options.
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
		ContainerInterval: o.ContainerCheckInterval,
		NeverUsed:         o.ContainerNeverUsed.Milliseconds(),
		Compat38:          o.Compat38,
	}
	o.setAuth(&c)
	o.setLimits(&c)
	return c
}

// openLog opens the data directory and brings the tree to the state in it.
func (s *Server) openLog() error {
	fsys, opts := s.opts.FS, wal.Options{
		SegmentSize: s.opts.segmentBytes, KeepSnapshots: s.opts.SnapshotsKept, NoSync: s.opts.NoSync,
	}
	// The tree promises that no record is longer than two requests, of which the
	// log may have longer ones than are let in now.
	opts.MaxRecord = 2 * mostFrame
	if fsys == nil {
		fsys = wal.OS{}
	} else {
		// Growing ahead is for disks; in memory it would cost megabytes.
		opts.Preallocate = -1
	}
	if err := foreign(fsys, s.opts.DataDir); err != nil {
		return err
	}
	log, found, err := wal.Open(fsys, s.opts.DataDir, opts)
	if err != nil {
		return fmt.Errorf("zkserver: cannot use the data directory: %w", err)
	}
	count := func(size int) {
		s.loop.records++
		s.loop.bytes += int64(size)
	}
	if err := replay(s.loop.tree, found, nil, count); err != nil {
		log.Close()
		if wal.OutOfDescriptors(err) {
			return fmt.Errorf("zkserver: cannot recover from %s: %w; raise the limit of open files", s.opts.DataDir, err)
		}
		if errors.Is(err, tree.ErrVersion) {
			return fmt.Errorf("zkserver: cannot recover from %s: %w", s.opts.DataDir, err)
		}
		return fmt.Errorf("zkserver: cannot recover from %s: %w; restore the directory from a copy, or move it away to start empty",
			s.opts.DataDir, err)
	}
	s.loop.log, s.loop.index, s.loop.durable = log, found.LastIndex, found.LastIndex
	s.reportRecovery(found)
	return nil
}

// foreign refuses a directory with the data of an Apache ZooKeeper and none of
// this server's: to start empty there would look as if every lock were free.
func foreign(fsys wal.FS, dir string) error {
	const theirs = "version-2"
	names, err := fsys.ReadDir(dir)
	if err != nil || !slices.Contains(names, theirs) {
		return nil // one that is missing or can't be read is for Open to judge
	}
	if slices.ContainsFunc(names, func(n string) bool { return len(n) > 4 && n[:4] == "log-" }) {
		return nil
	}
	return fmt.Errorf("zkserver: %s holds the data of an Apache ZooKeeper, which this server cannot read: "+
		"give it a directory of its own, and bring the nodes over as a client if they are needed", filepath.Join(dir, theirs))
}

// reportRecovery logs what an operator should know about a start.
func (s *Server) reportRecovery(found *wal.Recovered) {
	for _, err := range found.BadSnapshots {
		s.log.Warn("a damaged snapshot was passed over; the log covers what it held", "error", err)
	}
	if found.Torn != nil {
		s.log.Warn("the log's end was unfinished, as after a crash; nothing acknowledged was in it, unless the disk damaged it since",
			"torn", found.Torn.String())
	}
	if s.opts.FS == nil && ownership.GroupWritable(s.opts.DataDir) {
		s.log.Warn("the members of the data directory's group can replace its files, and so take every lock; "+
			"chmod g-w it unless they may", "dir", s.opts.DataDir)
	}
	if s.opts.NoSync {
		s.log.Warn("the log is not synced: a loss of power loses what was acknowledged, and locks can be held twice after it; "+
			"leave the NoSync option (forceSync=no) out unless the data may be lost", "dir", s.opts.DataDir)
	}
	s.log.Info("data directory opened", "dir", s.opts.DataDir, "snapshot", found.SnapshotIndex,
		"records", s.loop.records, "zxid", fmt.Sprintf("%#x", s.loop.tree.Zxid()), "took", s.elapsed().Round(time.Millisecond))
}

// record appends the round's records to the log, for the next sync.
func (s *Server) record() error {
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
			l.index, l.filling.index = index, index
			l.records++
			l.bytes += int64(len(rec))
		}
	}
	clear(records)
	l.out.Records = records[:0]
	return nil
}
