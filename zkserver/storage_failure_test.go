package zkserver

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/internal/wal"
	"github.com/zklock/zklock/internal/wal/memfs"
	"github.com/zklock/zklock/internal/wire"
)

// TestFaultAtEveryOperation fails each disk operation from start to end, once or from then on. A
// new server must have every acknowledged node, and no refused one.
func TestFaultAtEveryOperation(t *testing.T) {
	faults := []struct {
		name  string
		err   error
		keep  int
		lasts bool
	}{
		{"EIO once", syscall.EIO, 0, false},
		{"short write once", syscall.ENOSPC, 100, false},
		{"ENOSPC for writes from then on", syscall.ENOSPC, 40, true},
	}
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			sum := make(map[string]int)
			for k := 0; ; k++ {
				hit := false
				fault := func(op memfs.Op) memfs.Fault {
					later := f.lasts && op.N > k && (op.Kind == memfs.OpWrite || op.Kind == memfs.OpCreate || op.Kind == memfs.OpSync)
					if op.N != k && !later {
						return memfs.Fault{}
					}
					hit = true
					return memfs.Fault{Err: fmt.Errorf("%s %s: %w", op.Kind, op.Name, f.err), Keep: f.keep}
				}
				var outcome string
				synctest.Test(t, func(t *testing.T) { outcome = runWithFault(t, fault) })
				sum[outcome]++
				if t.Failed() {
					t.Fatalf("operation %d: %s", k, outcome)
				}
				if !hit {
					break
				}
			}
			var parts []string
			for _, o := range slices.Sorted(maps.Keys(sum)) {
				parts = append(parts, fmt.Sprintf("%d %s", sum[o], o))
			}
			t.Log(strings.Join(parts, ", "))
			if sum["not started"] < 5 || sum["read-only"] < 20 || sum["unharmed"] < 10 {
				t.Error("an outcome that must happen did not")
			}
		})
	}
}

// runWithFault runs a server on a disk with a fault, through writes, snapshots, and Shutdown.
// Then it checks the nodes of a new server.
func runWithFault(t *testing.T, fault func(memfs.Op) memfs.Fault) (outcome string) {
	opts, fs := onMemory(t, 11)
	opts.SnapshotRecords, opts.SnapshotsKept, opts.segmentBytes = 12, 1, 2000
	fs.SetFault(fault)
	var acknowledged, refused []string
	s, err := New(&opts)
	if err != nil {
		outcome = "not started"
		if !errors.Is(err, syscall.EIO) && !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EMFILE) || !strings.Contains(err.Error(), opts.DataDir) {
			t.Errorf("the start: %v", err)
		}
	} else {
		acknowledged, refused, outcome = writeNodes(t, s, "/n")
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	}
	fs.SetFault(nil)
	fs.Crash()
	s = start(t, opts)
	c := login(t, s, time.Minute)
	c.wantNodes(acknowledged, refused)
	s.Close()
	return outcome
}

// wantNodes fails unless the acknowledged nodes exist, and the refused ones do not.
func (c *rawClient) wantNodes(acknowledged, refused []string) {
	c.t.Helper()
	for _, path := range acknowledged {
		if !c.exists(path) {
			c.t.Errorf("%s was acknowledged and does not exist", path)
		}
	}
	for _, path := range refused {
		if c.exists(path) {
			c.t.Errorf("%s was refused and exists", path)
		}
	}
}

// writeNodes creates nodes whose names begin with prefix, and returns the outcomes.
func writeNodes(t *testing.T, s *Server, prefix string) (acknowledged, refused []string, outcome string) {
	outcome = "unharmed"
	var c *rawClient
	for i := range 40 {
		if c == nil {
			c = open(t, s)
			if !c.tryHandshake(wire.ConnectRequest{Timeout: 60_000, ReadOnly: true}) {
				c = nil // the handshake met the fault
				continue
			}
		}
		path := fmt.Sprintf("%s%d", prefix, i)
		switch err := c.tryCreate(path); {
		case err == nil && c.session.ReadOnly:
			t.Errorf("%s was acknowledged by a read-only server", path)
		case err == nil:
			acknowledged = append(acknowledged, path)
		case errors.Is(err, wire.ErrNotReadOnly):
			refused = append(refused, path)
			outcome = "read-only"
		case closedError(err):
			c = nil // unknown
		default:
			t.Errorf("%s: %v", path, err)
		}
		synctest.Wait() // for a snapshot
	}
	if outcome == "read-only" {
		c.wantNodes(acknowledged, refused)
	}
	return acknowledged, refused, outcome
}

// tryHandshake reports whether the server granted a session.
func (c *rawClient) tryHandshake(req wire.ConnectRequest) bool {
	return c.connect(req) == nil && c.session.SessionID != 0
}

// newServerWithFailedDisk returns a server that has become read-only, and a client from before.
func newServerWithFailedDisk(t *testing.T, edit func(*Options)) (*Server, *rawClient, *memfs.FS, Options) {
	opts, fs := onMemory(t, 12)
	opts.FourLetterWords = []string{"*"}
	edit(&opts)
	s := start(t, opts)
	c := login(t, s, 10*time.Second)
	c.create("/lock", wire.ModePersistent)
	c.create("/lock/n-", wire.ModeEphemeralSequential)
	c.do(wire.OpCreateContainer, &wire.CreateRequest{Path: "/box", ACL: openACL(), Flags: wire.ModeContainer})
	c.create("/box/in", wire.ModePersistent)
	c.do(wire.OpDelete, &wire.DeleteRequest{Path: "/box/in", Version: -1})
	breakDisk(fs, memfs.OpSync, syscall.EIO)
	if err := c.tryCreate("/lost"); !closedError(err) {
		t.Fatalf("a write to a failed disk: %v", err)
	}
	return s, c, fs, opts
}

func TestReadOnlyServerKeepsKnownSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, old, fs, opts := newServerWithFailedDisk(t, func(*Options) {})
		if c := open(t, s); c.tryHandshake(wire.ConnectRequest{Timeout: 5000}) {
			t.Error("a new client that does not accept a read-only server got a session")
		}
		local := open(t, s)
		if !local.tryHandshake(wire.ConnectRequest{Timeout: 5000, ReadOnly: true}) || !local.session.ReadOnly {
			t.Fatal("a client that accepts a read-only server got no session")
		}
		c := open(t, s)
		req := old.resumption()
		req.Timeout = 7000
		if !c.tryHandshake(req) || c.session.SessionID != old.session.SessionID || c.session.Timeout != 10_000 || !c.session.ReadOnly {
			t.Errorf("a known session was answered with %+v", c.session)
		}
		time.Sleep(time.Hour) // no client sends anything
		if n := s.Stats().Sessions; n != 1 {
			t.Errorf("%d sessions, want only the known one: the local one has expired", n)
		}
		local.wantClosed()
		if !c.exists("/lock/n-0000000000") || !c.exists("/box") {
			t.Error("a known session or a container ended")
		}
		if _, err := c.try(wire.OpCloseSession, nil); !errors.Is(err, wire.ErrNotReadOnly) {
			t.Errorf("the end of a known session: %v", err)
		}
		s.Close()
		fs.SetFault(nil)
		fs.Restart()
		s = start(t, opts)
		if c := resume(t, s, old); c.session.SessionID != old.session.SessionID || c.session.ReadOnly {
			t.Errorf("after the restart: %+v", c.session)
		}
		if c := open(t, s); c.tryHandshake(local.resumption()) {
			t.Error("a local session was resumed after a restart")
		}
	})
}

func TestReadOnlyServerRefusesWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, old, _, _ := newServerWithFailedDisk(t, func(*Options) {})
		c := resume(t, s, old)
		acl := openACL()
		for op, req := range map[wire.OpCode]wire.Record{
			wire.OpCreate:    &wire.CreateRequest{Path: "/x", ACL: acl},
			wire.OpCreate2:   &wire.CreateRequest{Path: "/x", ACL: acl},
			wire.OpDelete:    &wire.DeleteRequest{Path: "/lock/n-0000000000", Version: -1},
			wire.OpSetData:   &wire.SetDataRequest{Path: "/lock", Version: -1},
			wire.OpSetACL:    &wire.SetACLRequest{Path: "/lock", ACL: acl, Version: -1},
			wire.OpMulti:     &wire.MultiRequest{},
			wire.OpSync:      &wire.SyncRequest{Path: "/"},
			wire.OpCreateTTL: &wire.CreateTTLRequest{Path: "/x", ACL: acl, Flags: wire.ModePersistentTTL, TTL: 5},
		} {
			if _, err := c.try(op, req); !errors.Is(err, wire.ErrNotReadOnly) {
				t.Errorf("%v: %v", op, err)
			}
		}
		c.do(wire.OpPing, nil)
		c.do(wire.OpGetData, &wire.GetDataRequest{Path: "/lock", Watch: true})
		c.do(wire.OpGetChildren, &wire.GetChildrenRequest{Path: "/lock"})
		if c.exists("/lost") {
			t.Error("an unacknowledged node exists")
		}
	})
}

func TestReadOnlyIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, _, _ := newServerWithFailedDisk(t, func(*Options) {})
		st := s.Stats()
		if !st.ReadOnly || st.StorageErrors != 1 || !strings.Contains(st.StorageError, "input/output error") || st.NoSync {
			t.Errorf("%+v", st)
		}
		for name, want := range map[string]string{"isro": "ro", "ruok": "imok"} {
			if got := word(t, s, name); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
	})
}

// TestReadOnlyFileSystemKeepsReads: the file system turns read-only. The server continues with
// reads. A new server refuses to start.
func TestReadOnlyFileSystemKeepsReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts, fs := onMemory(t, 15)
		opts.SnapshotRecords, opts.segmentBytes = 20, 2000
		s := start(t, opts)
		c := login(t, s, time.Minute)
		for i := range 50 {
			c.create(fmt.Sprintf("/n%d", i), wire.ModePersistent)
		}
		synctest.Wait()
		fs.SetFault(func(op memfs.Op) memfs.Fault {
			switch op.Kind {
			case memfs.OpOpen, memfs.OpOpenDir, memfs.OpReadDir, memfs.OpRead, memfs.OpSize, memfs.OpClose, memfs.OpMkdir:
				return memfs.Fault{}
			}
			return memfs.Fault{Err: fmt.Errorf("%s %s: %w", op.Kind, op.Name, syscall.EROFS)}
		})
		if err := c.tryCreate("/lost"); !closedError(err) {
			t.Fatalf("a write to a read-only file system: %v", err)
		}
		c = resume(t, s, c)
		if !c.session.ReadOnly || !c.exists("/n0") || !c.exists("/n49") || c.exists("/lost") {
			t.Error("the server does not show what was acknowledged, read-only")
		}
		if err := c.tryCreate("/lost"); !errors.Is(err, wire.ErrNotReadOnly) {
			t.Errorf("a write to a read-only server: %v", err)
		}
		if st := s.Stats(); !st.ReadOnly || !strings.Contains(st.StorageError, "read-only file system") || isClosed(s.Done()) {
			t.Errorf("%+v", st)
		}
		s.Close()
		if _, err := New(&opts); !errors.Is(err, syscall.EROFS) || !strings.Contains(err.Error(), "mounted read-only") {
			t.Errorf("a start on a read-only file system: %v", err)
		}
	})
}

func TestEndOnStorageErrorEndsServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, _, _ := newServerWithFailedDisk(t, func(o *Options) { o.EndOnStorageError = true })
		<-s.Done()
		if err := s.Serve(listenMem(t)); !errors.Is(err, ErrStorage) || !errors.Is(err, syscall.EIO) {
			t.Errorf("Serve: %v", err)
		}
	})
}

// TestUnreadableDiskEndsTheServer: the server can neither write its files nor read them, as
// after the kernel shut the file system down. It ends. A restart has every acknowledged node.
func TestUnreadableDiskEndsTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts, fs := onMemory(t, 16)
		s := start(t, opts)
		c := login(t, s, time.Minute)
		c.create("/kept", wire.ModePersistent)
		fs.SetFault(func(op memfs.Op) memfs.Fault {
			return memfs.Fault{Err: fmt.Errorf("%s %s: %w", op.Kind, op.Name, syscall.EIO)}
		})
		if err := c.tryCreate("/lost"); !closedError(err) {
			t.Fatalf("a write to a file system that was shut down: %v", err)
		}
		<-s.Done()
		if err := s.Serve(listenMem(t)); !errors.Is(err, ErrStorage) || !strings.Contains(err.Error(), "could not be read back") {
			t.Errorf("Serve: %v", err)
		}
		s.Close()
		fs.SetFault(nil)
		s = start(t, opts)
		if c = login(t, s, time.Minute); !c.exists("/kept") {
			t.Error("an acknowledged change is lost")
		}
	})
}

// TestLostLockEndsTheServer: another server may now use the directory, so the server ends and
// does not even read it.
func TestLostLockEndsTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts, fs := onMemory(t, 13)
		var log strings.Builder
		opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
		opts.SnapshotRecords = 20
		s := start(t, opts)
		c := login(t, s, time.Minute)
		created := int64(0)
		for i := range 40 {
			if i == 3 {
				fs.LoseLock(opts.DataDir + "/lock")
			}
			if c.tryCreate(fmt.Sprintf("/n%d", i)) != nil {
				break
			}
			created++
			synctest.Wait()
		}
		<-s.Done()
		// The session was the first transaction.
		if st := s.Stats(); st.Zxid != 1+created {
			t.Errorf("the last figures have transaction %d, the last acknowledged one is %d", st.Zxid, 1+created)
		}
		if err := s.Serve(listenMem(t)); !errors.Is(err, wal.ErrLockLost) || !errors.Is(err, ErrStorage) {
			t.Errorf("Serve: %v", err)
		}
		s.Close()
		if !strings.Contains(log.String(), "the server ends") || strings.Contains(log.String(), "recovers") {
			t.Errorf("the log does not report the end, or promises recovery without the directory:\n%s", log.String())
		}
		names, err := fs.ReadDir(opts.DataDir)
		if err != nil || slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, "snapshot") }) {
			t.Errorf("files %q, %v: a snapshot in another's directory", names, err)
		}
	})
}

// TestUnneededSegmentCanStay: a snapshot replaces the first segment, which can be neither read nor
// removed. The server removes other files, counts its snapshots as written, and starts again.
func TestUnneededSegmentCanStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const segment = "/log-00000000000000000001"
		opts, fs := onMemory(t, 17)
		var log strings.Builder
		opts.SnapshotRecords, opts.segmentBytes, opts.Logger = 20, 2000, logTo(&log)
		s := start(t, opts)
		c := login(t, s, time.Hour)
		c.createWithData("/before", 15)
		fs.SetFault(func(op memfs.Op) memfs.Fault {
			fails := op.Kind == memfs.OpOpen || op.Kind == memfs.OpRemove
			if fails && op.Name == opts.DataDir+segment {
				return memfs.Fault{Err: fmt.Errorf("%s %s: %w", op.Kind, op.Name, syscall.EIO)}
			}
			return memfs.Fault{}
		})
		files := make([]int, 4)
		for i := range files {
			for j := range 100 {
				c.create(fmt.Sprintf("/n%d-%d", i, j), wire.ModePersistent)
				synctest.Wait() // for a snapshot
			}
			names, err := fs.ReadDir(opts.DataDir)
			must(t, err)
			files[i] = len(names)
		}
		if files[3] > files[0]+2 {
			t.Errorf("after each hundred writes, the directory had %v files", files)
		}
		if st := s.Stats(); st.SnapshotsFailed != 0 || st.SnapshotsWritten < 10 {
			t.Errorf("%d snapshots are written, and %d failed", st.SnapshotsWritten, st.SnapshotsFailed)
		}
		must(t, s.Shutdown(t.Context()))
		text := log.String()
		if !strings.Contains(text, "could not be removed") || !strings.Contains(text, segment) {
			t.Errorf("the log does not report the file that is left:\n%s", text)
		}
		if strings.Contains(text, "cannot write a snapshot") {
			t.Errorf("the log reports a failed snapshot:\n%s", text)
		}
		log.Reset()
		s = start(t, opts)
		text = log.String()
		if !strings.Contains(text, "level=WARN") || !strings.Contains(text, segment) {
			t.Errorf("the log of the start does not name the file:\n%s", text)
		}
		if c := login(t, s, time.Hour); !c.exists("/before14") || !c.exists("/n3-99") {
			t.Error("an acknowledged change is lost")
		}
	})
}

// TestUnfinishedFilesCanStay: a crash left unfinished files that cannot be removed. The server
// starts, and does not need their names.
func TestUnfinishedFilesCanStay(t *testing.T) {
	opts, fs := onMemory(t, 18)
	opts.segmentBytes = 2000
	s := start(t, opts)
	login(t, s, time.Hour).createWithData("/before", 3)
	next := s.loop.log.Stats().LastIndex + 1
	s.Close()
	names := []string{"/snapshot-00000000000000000002.tmp"}
	for index := next; index < next+60; index++ { // the next segment has one of these indexes
		names = append(names, fmt.Sprintf("/log-%020d.tmp", index))
	}
	for _, name := range names {
		fs.WriteFile(opts.DataDir+name, []byte("?"))
	}
	fs.SetFault(func(op memfs.Op) memfs.Fault {
		left := slices.Contains(names, strings.TrimPrefix(op.Name, opts.DataDir))
		if left && (op.Kind == memfs.OpCreate || op.Kind == memfs.OpRemove) {
			return memfs.Fault{Err: fmt.Errorf("%s %s: %w", op.Kind, op.Name, syscall.EPERM)}
		}
		return memfs.Fault{}
	})
	var log strings.Builder
	opts.Logger = logTo(&log)
	s = start(t, opts)
	if !strings.Contains(log.String(), names[0]) || !strings.Contains(log.String(), names[1]) {
		t.Errorf("the log does not name the files:\n%s", log.String())
	}
	c := login(t, s, time.Hour)
	c.createWithData("/after", 100)
	if st := s.loop.log.Stats(); st.Segments < 2 || !c.exists("/before2") || !c.exists("/after99") {
		t.Errorf("nodes are lost, or the log does not continue in a new segment: %+v", st)
	}
}

// TestChangedSegmentEndsTheServer changes the segment that the server writes, also so that all
// acknowledged changes can be read back.
func TestChangedSegmentEndsTheServer(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: this system cannot move an open file")
	}
	for name, change := range map[string]func(segment string) error{
		"replaced by a copy": func(segment string) error {
			content, err := os.ReadFile(segment)
			return errors.Join(err, os.WriteFile(segment+".copy", content, 0o600), os.Rename(segment+".copy", segment))
		},
		"renamed":   func(segment string) error { return os.Rename(segment, segment+".old") },
		"removed":   os.Remove,
		"truncated": func(segment string) error { return os.Truncate(segment, 100) },
	} {
		t.Run(name, func(t *testing.T) {
			opts := testOptions(t)
			opts.DataDir = t.TempDir()
			s := start(t, opts)
			c := login(t, s, time.Minute)
			c.create("/kept", wire.ModePersistent)
			must(t, change(filepath.Join(opts.DataDir, "log-00000000000000000001")))
			if err := c.tryCreate("/lost"); !closedError(err) {
				t.Errorf("a write: %v", err)
			}
			select {
			case <-s.Done():
			case <-time.After(time.Minute):
				t.Fatal("the server does not end")
			}
			err := s.Serve(listenMem(t))
			if !errors.Is(err, ErrStorage) || !errors.Is(err, wal.ErrFileChanged) {
				t.Fatalf("Serve: %v", err)
			}
			text := err.Error()
			if !strings.Contains(text, "put the file back") || strings.Contains(text, "read back") {
				t.Errorf("the error does not fit: %v", err)
			}
		})
	}
}

func TestStartOnFullDiskFails(t *testing.T) {
	opts, fs := onMemory(t, 14)
	s := start(t, opts)
	login(t, s, time.Minute).create("/x", wire.ModePersistent)
	s.Close()
	breakDisk(fs, memfs.OpWrite, syscall.ENOSPC)
	if _, err := New(&opts); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "free") || !strings.Contains(err.Error(), opts.DataDir) {
		t.Errorf("the start on a full disk: %v", err)
	}
	fs.SetFault(nil)
	if !login(t, start(t, opts), time.Minute).exists("/x") {
		t.Error("lost")
	}
}

// TestFailedStartReportsDamage: the disk damages the last batch after the server was killed. A
// start cuts the batch off and then fails, so the next start finds no damage.
func TestFailedStartReportsDamage(t *testing.T) {
	opts, fs := onMemory(t, 15)
	s := start(t, opts)
	login(t, s, time.Minute).create("/x", wire.ModePersistent)
	fs.Restart()
	s.Close()
	segment := filepath.Join(opts.DataDir, "log-00000000000000000001")
	content, err := fs.ReadFile(segment)
	must(t, err)
	fs.FlipBit(segment, int64(len(content))*8-1)
	breakDisk(fs, memfs.OpSync, syscall.EIO)
	var log strings.Builder
	opts.Logger = logTo(&log)
	if _, err := New(&opts); !errors.Is(err, syscall.EIO) {
		t.Error(err)
	}
	if text := log.String(); !strings.Contains(text, segment) || !strings.Contains(text, "recovery cuts off") {
		t.Errorf("the log says %q", text)
	}
}

// TestSecondFaultKeepsAcknowledgedChanges: the disk fails in two runs of a server. A crash or a
// restart follows each. The third run must have every acknowledged node of both, and no refused
// one.
func TestSecondFaultKeepsAcknowledgedChanges(t *testing.T) {
	outcomes := make(map[string]int)
	const operations = 160 // about as many as in a run
	for k := 0; k < operations; k += scale(5, 1) {
		for j := k % 7; j < operations; j += scale(23, 3) {
			outcome := ""
			synctest.Test(t, func(t *testing.T) { outcome = twoFailingRuns(t, k, j) })
			if outcomes[outcome]++; t.Failed() {
				t.Fatalf("operations %d and %d: %s", k, j, outcome)
			}
		}
	}
	t.Log(outcomes)
	for _, o := range []string{"not started, read-only", "read-only, read-only", "unharmed, read-only", "read-only, unharmed"} {
		if outcomes[o] == 0 {
			t.Errorf("never happened: %s", o)
		}
	}
}

// twoFailingRuns runs a server twice. The first failing disk operation is k in the first run and
// j in the second. Then it checks the nodes of a third run.
func twoFailingRuns(t *testing.T, k, j int) (outcome string) {
	opts, fs := onMemory(t, uint64(k*1000+j))
	opts.SnapshotRecords, opts.SnapshotsKept, opts.segmentBytes = 12, 1, 2000
	var acknowledged, refused []string
	for run, at := range []int{k, j} {
		if run > 0 {
			outcome += ", "
		}
		// On every other disk, all later writes fail too.
		fs.SetFault(failFrom(at, k%2 == 0, (7*k+j)%120))
		s, err := New(&opts)
		if err != nil {
			outcome += "not started"
		} else {
			a, r, o := writeNodes(t, s, fmt.Sprintf("/run-%d-", run))
			acknowledged, refused, outcome = append(acknowledged, a...), append(refused, r...), outcome+o
			if err := s.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
		}
		fs.SetFault(nil)
		if j%2 == 0 {
			fs.Crash()
		} else {
			fs.Restart()
		}
	}
	s := start(t, opts)
	defer s.Close()
	login(t, s, time.Minute).wantNodes(acknowledged, refused)
	return outcome
}

// failFrom fails the operation with number at, counted from the first call, after keep bytes. If
// lasts is true, all later writes and syncs also fail.
func failFrom(at int, lasts bool, keep int) func(memfs.Op) memfs.Fault {
	first := -1
	return func(op memfs.Op) memfs.Fault {
		if first < 0 {
			first = op.N
		}
		n := op.N - first
		later := lasts && n > at && (op.Kind == memfs.OpWrite || op.Kind == memfs.OpSync)
		if n != at && !later {
			return memfs.Fault{}
		}
		return memfs.Fault{Err: fmt.Errorf("%s %s: %w", op.Kind, op.Name, syscall.EIO), Keep: keep}
	}
}
