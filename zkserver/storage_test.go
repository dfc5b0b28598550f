package zkserver

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/internal/wal"
	"github.com/zklock/zklock/internal/wal/memfs"
	"github.com/zklock/zklock/internal/wire"
)

// onMemory returns options for a server that keeps its data in memory and logs nothing.
func onMemory(t testing.TB, seed uint64) (Options, *memfs.FS) {
	fs := memfs.New(rand.New(rand.NewPCG(seed, 7)))
	opts := testOptions(t)
	opts.DataDir, opts.setup.FS, opts.Logger = "/var/lib/demo", fs, discard()
	return opts, fs
}

// TestAcknowledgedWritesSurviveCrashes crashes the server repeatedly, with a loss of power,
// while a client writes. Every acknowledged node must survive.
func TestAcknowledgedWritesSurviveCrashes(t *testing.T) {
	const rounds = 200
	acknowledged, unknown := make(map[string]bool), 0
	opts, fs := onMemory(t, 3)
	opts.SnapshotRecords = 300 // crashes also occur during snapshots
	random := rand.New(rand.NewPCG(3, 3))
	for round := range rounds {
		s, err := New(&opts)
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		c := login(t, s, time.Hour)
		wantAcknowledged(t, c, acknowledged, round)
		// The crash occurs at a random operation of the log.
		fs.FailAt(random.IntN(120), errors.New("power lost"), random.IntN(600))
		for i := range 100 {
			path := fmt.Sprintf("/r%d-%d", round, i)
			if err := c.tryCreate(path); err != nil {
				unknown++
				break
			}
			acknowledged[path] = true
		}
		fs.SetFault(nil)
		s.Close()
		fs.Crash()
	}
	if len(acknowledged) < rounds*10 || unknown < rounds/10 {
		t.Errorf("%d writes acknowledged, %d unknown: the test did too little", len(acknowledged), unknown)
	}
	t.Logf("%d acknowledged writes over %d crashes, %d of them in the middle of a write", len(acknowledged), rounds, unknown)
}

// tryCreate creates a node and returns the error, also if the connection ended.
func (c *rawClient) tryCreate(path string) error {
	c.xid++
	req := &wire.CreateRequest{Path: path, ACL: openACL()}
	if _, err := c.nc.Write(wire.AppendRequest(nil, c.xid, wire.OpCreate, req)); err != nil {
		return err
	}
	h, _, err := c.next()
	if err == nil && h.Err != 0 {
		err = h.Err
	}
	return err
}

// wantAcknowledged fails if an acknowledged node does not exist.
func wantAcknowledged(t *testing.T, c *rawClient, acknowledged map[string]bool, round int) {
	t.Helper()
	there := make(map[string]bool)
	resp := c.do(wire.OpGetChildren, &wire.GetChildrenRequest{Path: "/"}).(*wire.GetChildrenResponse)
	for _, name := range resp.Children {
		there["/"+name] = true
	}
	for path := range acknowledged {
		if !there[path] {
			t.Fatalf("round %d: %s was acknowledged and does not exist", round, path)
		}
	}
}

func TestFailedSyncAcknowledgesNothing(t *testing.T) {
	for _, kind := range []memfs.Kind{memfs.OpWrite, memfs.OpSync} {
		t.Run(kind.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testFailedSync(t, kind) })
		})
	}
}

func testFailedSync(t *testing.T, kind memfs.Kind) {
	opts, fs := onMemory(t, 4)
	var log strings.Builder
	opts.Logger = logTo(&log)
	s := start(t, opts)
	served := make(chan error, 1)
	network := listenMem(t)
	go func() { served <- s.Serve(network) }()
	writer, reader := login(t, s, time.Minute), login(t, s, time.Minute)
	writer.create("/before", wire.ModePersistent)
	breakDisk(fs, kind, syscall.ENOSPC)
	if err := writer.tryCreate("/after"); !closedError(err) {
		t.Errorf("a write after the disk failed: %v, want a closed connection", err)
	}
	reader.wantClosed()
	synctest.Wait()
	if n := strings.Count(log.String(), "level=ERROR"); n != 1 || !strings.Contains(log.String(), "check the disk") {
		t.Errorf("the log has %d errors: %s", n, log.String())
	}
	reader = resume(t, s, reader)
	if !reader.exists("/before") || reader.exists("/after") {
		t.Error("reads do not show the acknowledged state")
	}
	if err := reader.tryCreate("/after"); !errors.Is(err, wire.ErrNotReadOnly) {
		t.Errorf("a write to a read-only server: %v", err)
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	err := <-served
	if !errors.Is(err, ErrStorage) || !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), opts.DataDir) {
		t.Errorf("Serve said %v, want ErrStorage with the cause and the directory", err)
	}
	fs.SetFault(nil)
	fs.Crash()
	opts.Logger = discard()
	c := login(t, start(t, opts), time.Minute)
	if !c.exists("/before") {
		t.Error("an acknowledged write was lost")
	}
}

// breakDisk makes every later operation of a kind fail.
func breakDisk(fs *memfs.FS, kind memfs.Kind, cause error) {
	fs.SetFault(func(op memfs.Op) memfs.Fault {
		if op.Kind == kind {
			return memfs.Fault{Err: fmt.Errorf("%s %s: %w", op.Kind, op.Name, cause)}
		}
		return memfs.Fault{}
	})
}

func TestSnapshotsBoundTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts, _ := onMemory(t, 5)
		opts.SnapshotRecords = 50
		s := start(t, opts)
		c := login(t, s, time.Hour)
		for range 1000 {
			c.create("/n-", wire.ModePersistentSequential)
		}
		synctest.Wait()
		if got := s.loop.log.Stats(); got.SnapshotIndex < 900 {
			t.Errorf("the newest snapshot is at %d of %d records", got.SnapshotIndex, got.LastIndex)
		}
		s.Close()
		s = start(t, opts)
		if n := s.Stats().Nodes; n < 1000 {
			t.Errorf("%d nodes after recovery from a snapshot", n)
		}
	})
}

func TestFailedSnapshotLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts, fs := onMemory(t, 6)
		opts.SnapshotRecords = 20
		s := start(t, opts)
		c := login(t, s, time.Hour)
		fs.SetFault(func(op memfs.Op) memfs.Fault {
			if op.Kind == memfs.OpCreate && strings.Contains(op.Name, "snapshot") {
				return memfs.Fault{Err: syscall.ENOSPC}
			}
			return memfs.Fault{}
		})
		for range 100 {
			c.create("/n-", wire.ModePersistentSequential)
		}
		synctest.Wait()
		if got := s.loop.log.Stats().SnapshotIndex; got != 0 {
			t.Errorf("a snapshot at %d although every one failed", got)
		}
	})
}

func TestDirectoryIsLocked(t *testing.T) {
	opts := testOptions(t)
	opts.DataDir = t.TempDir()
	s := start(t, opts)
	if _, err := New(&opts); !errors.Is(err, wal.ErrLocked) || !strings.Contains(err.Error(), opts.DataDir) {
		t.Errorf("a second server on the directory: %v", err)
	}
	s.Close()
	start(t, opts).Close()
}

// TestRelativeDirectoryStaysAfterChdir: the program may change its working directory.
func TestRelativeDirectoryStaysAfterChdir(t *testing.T) {
	opts, home := testOptions(t), t.TempDir()
	opts.DataDir = "data"
	t.Chdir(home)
	s := start(t, opts)
	t.Chdir(t.TempDir())
	login(t, s, time.Minute).create("/a", wire.ModePersistent)
	must(t, s.Shutdown(t.Context())) // writes a snapshot
	t.Chdir(home)
	if !login(t, start(t, opts), time.Minute).exists("/a") {
		t.Error("the znode is gone")
	}
}

// TestDirectoryBehindLinkAndDotDot: all steps of the start must mean the same directory.
func TestDirectoryBehindLinkAndDotDot(t *testing.T) {
	opts, home := testOptions(t), t.TempDir()
	target := filepath.Join(home, "releases", "1")
	must(t, os.MkdirAll(target, 0o700))
	if err := os.Symlink(target, filepath.Join(home, "link")); err != nil {
		t.Skipf("SKIPPED: no symbolic links, for which Windows wants a permission: %v", err)
	}
	opts.DataDir = filepath.Join(home, "link") + "/../data"
	start(t, opts).Close()
	if _, err := os.Stat(filepath.Join(home, "data", "lock")); err != nil {
		t.Error(err)
	}
}

// wantWarnings starts servers whose directory is path below a directory with each mode. It fails
// unless the log contains words for exactly the modes that are true.
func wantWarnings(t *testing.T, words, path string, modes map[os.FileMode]bool) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("modes have no effect there")
	}
	for mode, warned := range modes {
		var log strings.Builder
		dir := t.TempDir()
		must(t, os.Chmod(dir, mode))
		start(t, Options{DataDir: filepath.Join(dir, path), Logger: logTo(&log)}).Close()
		if strings.Contains(log.String(), words) != warned {
			t.Errorf("mode %v: %s", mode, log.String())
		}
	}
}

// TestGroupWritableDirectoryIsWarnedAbout: the server cannot know whether the group should be
// able to write there.
func TestGroupWritableDirectoryIsWarnedAbout(t *testing.T) {
	wantWarnings(t, "data directory's group", "", map[os.FileMode]bool{0o700: false, 0o755: false, 0o770: true})
}

// TestReadableDirectoryIsWarnedAbout: a user who may read a directory can lock it.
func TestReadableDirectoryIsWarnedAbout(t *testing.T) {
	wantWarnings(t, "can lock the data directory", "",
		map[os.FileMode]bool{0o700: false, 0o750: false, 0o711: false, 0o755: true})
}

// TestWorldWritableParentIsWarnedAbout: a user who may write to the parent of the data directory
// can put another directory in its place.
func TestWorldWritableParentIsWarnedAbout(t *testing.T) {
	wantWarnings(t, "another user could replace the data directory", "data",
		map[os.FileMode]bool{0o755: false, 0o777: true, 0o777 | os.ModeSticky: false})
}

func TestDamagedDirectoryIsRefused(t *testing.T) {
	opts, fs := onMemory(t, 8)
	s := start(t, opts)
	c := login(t, s, time.Hour)
	for range 20 {
		c.create("/n-", wire.ModePersistentSequential)
	}
	s.Close()
	names, err := fs.ReadDir(opts.DataDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		fs.FlipBit(opts.DataDir+"/"+name, 8*400)
	}
	if s, err := New(&opts); !errors.Is(err, wal.ErrCorrupt) || !strings.Contains(err.Error(), "restore") {
		if s != nil {
			s.Close()
		}
		t.Errorf("a damaged log: %v, want an error that says what to do", err)
	}
}

// TestSyncsAreShared counts syncs. Requests that wait during a sync must share the next one.
func TestSyncsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts, _ := onMemory(t, 9)
		s := start(t, opts)
		c := login(t, s, time.Hour)
		before := s.Stats().Syncs
		const n = 500
		var b []byte
		for i := range n {
			b = wire.AppendRequest(b, int32(i+1), wire.OpCreate, &wire.CreateRequest{Path: "/n-", ACL: openACL(), Flags: wire.ModePersistentSequential})
		}
		go c.write(b)
		for range n {
			if _, _, err := c.next(); err != nil {
				t.Fatal(err)
			}
		}
		if syncs := s.Stats().Syncs - before; syncs == 0 || syncs > n/5 {
			t.Errorf("%d pipelined creates took %d syncs", n, syncs)
		}
	})
}

// TestNoSyncSkipsSyncsAndWarns checks that the server does not sync writes, and reports that in
// its log and figures.
func TestNoSyncSkipsSyncsAndWarns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts, fs := onMemory(t, 26)
		var log strings.Builder
		opts.NoSync, opts.Logger = true, logTo(&log)
		s := start(t, opts)
		c := login(t, s, time.Hour)
		before := fs.Syncs()
		c.createWithData("/a", 20)
		if n := fs.Syncs() - before; n != 0 || !s.Stats().NoSync || !strings.Contains(log.String(), "not synced") {
			t.Errorf("%d syncs; log: %s", n, log.String())
		}
		s.Close()
		fs.Restart() // not a loss of power
		opts.Logger = discard()
		if !login(t, start(t, opts), time.Hour).exists("/a19") {
			t.Error("the end of the process lost a node")
		}
	})
}

func TestZooKeeperDirectoryIsRefused(t *testing.T) {
	opts, fs := onMemory(t, 27)
	must(t, fs.MkdirAll(opts.DataDir))
	fs.WriteFile(opts.DataDir+"/version-2", nil)
	for _, name := range []string{"/myid", "/log-archive", "/log-2024.txt", "/log-00000000000000000001.tmp"} {
		fs.WriteFile(opts.DataDir+name, nil) // none is a segment of this server's log
		_, err := New(&opts)
		if err == nil || !strings.Contains(err.Error(), "Apache ZooKeeper") || !strings.Contains(err.Error(), opts.DataDir) {
			t.Errorf("a directory of ZooKeeper with %s: %v", name, err)
		}
	}
	fs.Delete(opts.DataDir + "/version-2")
	fs.WriteFile(opts.DataDir+"/README", []byte("?"))
	start(t, opts).Close()
	fs.WriteFile(opts.DataDir+"/version-2", nil)
	start(t, opts) // this server has used the directory before
}
