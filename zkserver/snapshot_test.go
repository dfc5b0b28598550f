package zkserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/internal/tree"
	"github.com/zklock/zklock/internal/wal"
	"github.com/zklock/zklock/internal/wal/memfs"
	"github.com/zklock/zklock/internal/wire"
)

// createWithData creates n nodes with some data.
func (c *rawClient) createWithData(prefix string, n int) {
	c.t.Helper()
	for i := range n {
		c.do(wire.OpCreate, &wire.CreateRequest{Path: fmt.Sprintf("%s%d", prefix, i), Data: []byte(strings.Repeat("d", i%50)), ACL: openACL()})
	}
}

// TestSnapshotFromLogEqualsMemory checks that a snapshot made from the files equals the state in
// memory, byte for byte.
func TestSnapshotFromLogEqualsMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts, fs := onMemory(t, 21)
		opts.SnapshotRecords, opts.segmentBytes = 40, 3000
		s := start(t, opts)
		c := login(t, s, time.Hour)
		for round := range 5 {
			// The last record of the round triggers a snapshot.
			for s.Stats().SnapshotsWritten == int64(round) {
				c.create("/n-", wire.ModePersistentSequential)
				synctest.Wait()
			}
			index := s.loop.log.Stats().SnapshotIndex
			if index != s.loop.lastIndex {
				t.Fatalf("the snapshot is of record %d, the last is %d", index, s.loop.lastIndex)
			}
			b, err := fs.ReadFile(fmt.Sprintf("%s/snapshot-%020d", opts.DataDir, index))
			if err != nil {
				t.Fatal(err)
			}
			if want := s.loop.tree.AppendSnapshot(nil); string(b[24:len(b)-16]) != string(want) {
				t.Errorf("snapshot %d is of another state than the one in memory", round)
			}
		}
	})
}

// createLarge creates n nodes with 512 KiB each.
func (c *rawClient) createLarge(prefix string, n int) {
	c.t.Helper()
	data := make([]byte, 512<<10)
	for i := range n {
		c.do(wire.OpCreate, &wire.CreateRequest{Path: fmt.Sprint(prefix, i), Data: data, ACL: openACL()})
	}
}

// TestSnapshotIsReadWithoutCopy checks that restoring a state allocates little more than the state.
func TestSnapshotIsReadWithoutCopy(t *testing.T) {
	opts, _ := onMemory(t, 28)
	s := start(t, opts)
	c := login(t, s, time.Hour)
	c.createLarge("/n", 32)
	var b []byte
	s.runOnLoop(func() { b = s.loop.tree.AppendSnapshot(nil) })
	fresh := tree.New(s.treeConfig())
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	must(t, restore(fresh, bytes.NewReader(b), int64(len(b)), nil))
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > uint64(len(b))*3/2 {
		t.Errorf("restoring a snapshot of %d bytes allocated %d bytes", len(b), n)
	}
}

// collections returns how many garbage collections the runtime and the program have started.
func collections() (automatic, forced uint64) {
	m := []metrics.Sample{{Name: "/gc/cycles/automatic:gc-cycles"}, {Name: "/gc/cycles/forced:gc-cycles"}}
	metrics.Read(m)
	return m[0].Value.Uint64(), m[1].Value.Uint64()
}

// TestSnapshotCollectsEarly checks that a snapshot, which allocates more than the whole state,
// starts garbage collections before the runtime has to: then, the loop would have to help.
func TestSnapshotCollectsEarly(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(75)) // less than a second state needs
	const nodes = 160
	opts := testOptions(t)
	opts.Logger, opts.DataDir, opts.NoSync = discard(), t.TempDir(), true
	opts.SnapshotRecords = nodes + 2 // with the session and the last create
	s := start(t, opts)
	c := login(t, s, time.Hour)
	c.createLarge("/n", nodes)
	runtime.GC()
	automatic, forced := collections()
	c.create("/last", wire.ModePersistent)
	waitFor(t, "the snapshot is written", func() bool { return s.Stats().SnapshotsWritten == 1 })
	a, f := collections()
	if a -= automatic; a > 0 {
		t.Errorf("the runtime started %d collections during the snapshot", a)
	}
	if f -= forced; f < 2 {
		t.Errorf("the snapshot started %d collections", f)
	}
}

// TestLastSnapshotStartsNoCollections checks that the snapshot at the end, which delays no other
// request, does not spend the time of the shutdown on garbage collections.
func TestLastSnapshotStartsNoCollections(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	opts := testOptions(t)
	opts.Logger, opts.DataDir, opts.NoSync = discard(), t.TempDir(), true
	s := start(t, opts)
	c := login(t, s, time.Hour)
	c.createLarge("/n", 80)
	runtime.GC()
	for range 120 { // more than half of the growth until the runtime starts a collection
		garbage = make([]byte, 1<<20)
	}
	_, before := collections()
	must(t, s.Shutdown(t.Context()))
	if _, after := collections(); after > before {
		t.Errorf("the last snapshot started %d collections", after-before)
	}
	if written, err := filepath.Glob(filepath.Join(opts.DataDir, "snapshot-*")); err != nil || len(written) != 1 {
		t.Errorf("the last snapshot is %q, %v", written, err)
	}
}

// TestCanceledSnapshotStartsNoCollection checks that a snapshot that is canceled ends at once.
func TestCanceledSnapshotStartsNoCollection(t *testing.T) {
	opts, disk := onMemory(t, 27)
	s := start(t, opts)
	c := login(t, s, time.Hour)
	c.createLarge("/n", 4)
	var index uint64
	var log *wal.Log
	s.runOnLoop(func() { index, log = s.loop.durableIndex, s.loop.log })
	cancel := make(chan struct{})
	cancelOnce := sync.OnceFunc(func() { close(cancel) })
	disk.SetFault(func(op memfs.Op) memfs.Fault {
		if op.Kind == memfs.OpWrite && strings.HasSuffix(op.Name, ".tmp") {
			cancelOnce()
		}
		return memfs.Fault{}
	})
	runtime.GC() // so that the server's garbage causes no early collection
	_, before := collections()
	if err := s.snapshotFromLog(log, index, cancel); !errors.Is(err, wal.ErrCanceled) {
		t.Errorf("the snapshot was canceled: %v", err)
	}
	if _, after := collections(); after > before {
		t.Errorf("the canceled snapshot started %d collections", after-before)
	}
}

// garbage keeps the compiler from removing an allocation.
var garbage []byte

// TestSnapshotDoesNotBlockRequests checks that a blocked snapshot delays no client.
func TestSnapshotDoesNotBlockRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts, fs := onMemory(t, 22)
		slow := &slowSnapshots{FS: fs, release: make(chan struct{})}
		opts.setup.FS, opts.SnapshotRecords = slow, 20
		s := start(t, opts)
		release := sync.OnceFunc(func() { close(slow.release) })
		t.Cleanup(release) // before the server's end, which waits for the snapshot
		c := login(t, s, time.Hour)
		began := time.Now()
		c.createWithData("/n", 200)
		synctest.Wait()
		if time.Since(began) > 0 {
			t.Errorf("200 writes took %v while a snapshot was blocked", time.Since(began))
		}
		if st := s.Stats(); st.SnapshotsWritten != 0 || slow.opened.Load() == 0 {
			t.Fatalf("%d snapshots written, %d begun", st.SnapshotsWritten, slow.opened.Load())
		}
		release()
		synctest.Wait()
		if st := s.Stats(); st.SnapshotsWritten == 0 {
			t.Error("no snapshot was written in the end")
		}
	})
}

// slowSnapshots blocks the creation of a snapshot until release is closed.
type slowSnapshots struct {
	*memfs.FS
	release chan struct{}
	opened  atomic.Int64
}

// Create implements wal.FS.
func (f *slowSnapshots) Create(name string) (wal.File, error) {
	if strings.Contains(name, "snapshot-") {
		f.opened.Add(1)
		<-f.release
	}
	return f.FS.Create(name)
}

// TestSnapshotFromMemoryReplacesDamagedLog: while the server runs, its files are damaged. The
// server saves the state in memory instead.
func TestSnapshotFromMemoryReplacesDamagedLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts, fs := onMemory(t, 23)
		var log strings.Builder
		opts.SnapshotRecords, opts.Logger = 50, logTo(&log)
		s := start(t, opts)
		c := login(t, s, time.Hour)
		c.createWithData("/a", 30)
		fs.FlipBit(opts.DataDir+"/log-00000000000000000001", 8*700)
		c.createWithData("/b", 30)
		synctest.Wait()
		if st := s.Stats(); st.SnapshotsWritten != 1 || st.ReadOnly || !strings.Contains(log.String(), "cannot be read back") {
			t.Fatalf("%d snapshots written, log: %s", st.SnapshotsWritten, log.String())
		}
		s.Close()
		opts.Logger = discard()
		c = login(t, start(t, opts), time.Hour)
		if !c.exists("/a29") || !c.exists("/b29") {
			t.Error("a node is lost")
		}
	})
}

// TestSnapshotFromMemoryReplacesDamagedSnapshots: while the server runs, all its snapshots become
// damaged or unreadable, and the log no longer begins with the first record. The server saves the
// state in memory instead, with every acknowledged change.
func TestSnapshotFromMemoryReplacesDamagedSnapshots(t *testing.T) {
	denied := func(op memfs.Op) memfs.Fault {
		if op.Kind == memfs.OpOpen && strings.Contains(op.Name, "snapshot-") && !strings.HasSuffix(op.Name, ".tmp") {
			return memfs.Fault{Err: fs.ErrPermission}
		}
		return memfs.Fault{}
	}
	for harm, do := range map[string]func(disk *memfs.FS, path string){
		"damaged":    func(disk *memfs.FS, path string) { disk.FlipBit(path, 8*100) },
		"removed":    func(disk *memfs.FS, path string) { disk.Delete(path) },
		"unreadable": func(disk *memfs.FS, _ string) { disk.SetFault(denied) },
	} {
		for _, kept := range []int{1, 3} {
			t.Run(fmt.Sprint(harm, " ", kept), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					opts, disk := onMemory(t, 91)
					var log strings.Builder
					opts.SnapshotRecords, opts.SnapshotsKept, opts.segmentBytes = 20, kept, 1500
					opts.Logger = logTo(&log)
					s := start(t, opts)
					c := login(t, s, time.Hour)
					for i := range 8 {
						c.createWithData(fmt.Sprintf("/r%d-", i), 20)
						synctest.Wait()
					}
					before := s.Stats()
					names, err := disk.ReadDir(opts.DataDir)
					must(t, err)
					if slices.Contains(names, "log-00000000000000000001") {
						t.Fatalf("the log still has the first record: %q", names)
					}
					for _, n := range names {
						if strings.HasPrefix(n, "snapshot-") {
							do(disk, opts.DataDir+"/"+n)
						}
					}
					c.createWithData("/x", 20)
					synctest.Wait()
					st := s.Stats()
					if st.SnapshotsWritten != before.SnapshotsWritten+1 || st.SnapshotsFailed != 0 || st.ReadOnly {
						t.Fatalf("%d snapshots written, %d failed, log: %s", st.SnapshotsWritten-before.SnapshotsWritten,
							st.SnapshotsFailed, log.String())
					}
					if !strings.Contains(log.String(), "check the disk") || strings.Contains(log.String(), "move it away") {
						t.Errorf("log: %s", log.String())
					}
					c.create("/last", wire.ModePersistent)
					s.Close()
					disk.SetFault(nil)
					opts.Logger = discard()
					c = login(t, start(t, opts), time.Hour)
					if !c.exists("/r0-0") || !c.exists("/x19") || !c.exists("/last") {
						t.Error("a node is lost")
					}
				})
			})
		}
	}
}

// changingDisk returns other data of a snapshot from its second open on.
type changingDisk struct {
	*memfs.FS
	opens atomic.Int64
}

// Open implements wal.FS.
func (d *changingDisk) Open(name string) (wal.File, error) {
	file, err := d.FS.Open(name)
	if err == nil && strings.Contains(name, "snapshot-") && !strings.HasSuffix(name, ".tmp") && d.opens.Add(1) > 1 {
		return changedFile{file}, nil
	}
	return file, err
}

type changedFile struct{ wal.File }

// ReadAt implements wal.File.
func (f changedFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(p, off)
	copy(p[:n], bytes.ReplaceAll(p[:n], []byte("holder-A"), []byte("holder-B")))
	return n, err
}

// TestSnapshotIsVerifiedAsRestored: the disk returns other data when the server reads a verified
// snapshot again. The server does not use that data: a start is refused, and the next snapshot is
// of the state in memory.
func TestSnapshotIsVerifiedAsRestored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts, disk := onMemory(t, 92)
		opts.SnapshotRecords = 20
		changing := &changingDisk{FS: disk}
		opts.setup.FS = changing
		s := start(t, opts)
		c := login(t, s, time.Hour)
		c.do(wire.OpCreate, &wire.CreateRequest{Path: "/lock", Data: []byte("holder-A"), ACL: openACL()})
		for i := range 2 { // the second snapshot is made from the first one
			c.createWithData(fmt.Sprintf("/n%d-", i), 20)
			synctest.Wait()
		}
		if st := s.Stats(); st.SnapshotsWritten != 2 || changing.opens.Load() < 2 {
			t.Fatalf("%d snapshots written, %d read", st.SnapshotsWritten, changing.opens.Load())
		}
		s.Close()
		changing.opens.Store(0)
		if again, err := New(&opts); err == nil {
			again.Close()
			t.Error("the server started with data that was not verified")
		} else if !strings.Contains(err.Error(), "snapshot-") || !strings.Contains(err.Error(), "checksum") {
			t.Errorf("the start was refused: %v", err)
		}
		opts.setup.FS = disk
		c = login(t, start(t, opts), time.Hour)
		if got := c.do(wire.OpGetData, &wire.GetDataRequest{Path: "/lock"}).(*wire.GetDataResponse); string(got.Data) != "holder-A" {
			t.Errorf("the snapshot has %q", got.Data)
		}
	})
}

// TestDamagedSnapshotIsNotKept checks that the server reads a snapshot back, and deletes it if
// that fails.
func TestDamagedSnapshotIsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts, fs := onMemory(t, 24)
		opts.SnapshotRecords, opts.SnapshotsKept = 30, 1
		s := start(t, opts)
		c := login(t, s, time.Hour)
		c.createWithData("/a", 35)
		synctest.Wait()
		good := s.loop.log.Stats().SnapshotIndex
		fs.SetFault(func(op memfs.Op) memfs.Fault {
			if op.Kind == memfs.OpRead && strings.HasSuffix(op.Name, ".tmp") {
				return memfs.Fault{Err: syscall.EIO}
			}
			return memfs.Fault{}
		})
		c.createWithData("/b", 35)
		synctest.Wait()
		st := s.Stats()
		if got := s.loop.log.Stats().SnapshotIndex; good == 0 || got != good || st.SnapshotsFailed != 1 || st.ReadOnly {
			t.Errorf("the newest snapshot is at %d, the good one was at %d; %d failed", got, good, st.SnapshotsFailed)
		}
		names, err := fs.ReadDir(opts.DataDir)
		if err != nil || slices.ContainsFunc(names, func(n string) bool { return strings.HasSuffix(n, ".tmp") }) {
			t.Errorf("%q, %v", names, err)
		}
	})
}

func TestSnapshotsKeptLimitsSnapshots(t *testing.T) {
	for kept, want := range map[int]int{0: 3, 1: 1, 5: 5} {
		synctest.Test(t, func(t *testing.T) {
			opts, fs := onMemory(t, 25)
			opts.SnapshotRecords, opts.SnapshotsKept, opts.segmentBytes = 20, kept, 1500
			s := start(t, opts)
			c := login(t, s, time.Hour)
			for i := range 12 {
				c.createWithData(fmt.Sprintf("/r%d-", i), 20)
				synctest.Wait()
			}
			names, err := fs.ReadDir(opts.DataDir)
			if err != nil {
				t.Fatal(err)
			}
			var snapshots, segments []string
			for _, n := range names {
				if strings.HasPrefix(n, "snapshot-") {
					snapshots = append(snapshots, n)
				} else if strings.HasPrefix(n, "log-") {
					segments = append(segments, n)
				}
			}
			if len(snapshots) != want {
				t.Errorf("SnapshotsKept %d leaves %q", kept, snapshots)
			}
			var first, oldest uint64
			if _, err := fmt.Sscanf(segments[0]+" "+snapshots[0], "log-%d snapshot-%d", &first, &oldest); err != nil || first > oldest+1 {
				t.Errorf("the log begins with %s, after the oldest snapshot %s", segments[0], snapshots[0])
			}
			// The server can start from the oldest one.
			s.Close()
			for _, n := range snapshots[1:] {
				fs.FlipBit(opts.DataDir+"/"+n, 8*100)
			}
			if c := login(t, start(t, opts), time.Hour); !c.exists("/r11-19") {
				t.Error("the last write is lost")
			}
		})
	}
}

// slowReadBack is a disk that takes a second for each read of a new snapshot.
type slowReadBack struct {
	*memfs.FS
	reads atomic.Int64
}

// Open implements wal.FS.
func (f *slowReadBack) Open(name string) (wal.File, error) {
	file, err := f.FS.Open(name)
	if err == nil && strings.HasSuffix(name, ".tmp") {
		file = slowFile{file, f}
	}
	return file, err
}

type slowFile struct {
	wal.File
	of *slowReadBack
}

// ReadAt implements wal.File.
func (f slowFile) ReadAt(p []byte, off int64) (int, error) {
	f.of.reads.Add(1)
	time.Sleep(time.Second)
	return f.File.ReadAt(p, off)
}

// TestEndDoesNotWaitForSnapshot: a snapshot is read back slowly, in the background or at the
// end. It does not delay Close, the deadline of Shutdown, or the change to read-only. No node is
// lost.
func TestEndDoesNotWaitForSnapshot(t *testing.T) {
	const large = 40 // nodes with 512 KiB: reading their snapshot back takes minutes
	for name, during := range map[string]struct {
		background bool // a snapshot is read back when the server ends
		end        func(t *testing.T, s *Server, fs *memfs.FS)
		within     time.Duration
	}{
		"last snapshot": {false, func(t *testing.T, s *Server, _ *memfs.FS) {
			ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
			defer cancel()
			if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Shutdown said %v", err)
			}
		}, 17 * time.Second},
		"close during the last snapshot": {false, func(t *testing.T, s *Server, _ *memfs.FS) {
			time.AfterFunc(5*time.Second, func() { s.Close() })
			if err := s.Shutdown(t.Context()); err != nil {
				t.Errorf("Shutdown said %v", err)
			}
		}, 7 * time.Second},
		"snapshot in the background": {true, func(t *testing.T, s *Server, _ *memfs.FS) { s.Close() }, 2 * time.Second},
		"failed disk": {true, func(t *testing.T, s *Server, fs *memfs.FS) {
			c := login(t, s, time.Hour)
			breakDisk(fs, memfs.OpSync, syscall.EIO)
			if err := c.tryCreate("/after"); !closedError(err) {
				t.Errorf("a write after the disk failed: %v, want a closed connection", err)
			}
			synctest.Wait()
			if !s.Stats().ReadOnly {
				t.Error("the server is not read-only")
			}
		}, 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opts, fs := onMemory(t, 29)
				slow := &slowReadBack{FS: fs}
				opts.setup.FS = slow
				if during.background {
					opts.SnapshotRecords = large + 1 // includes the session's record
				}
				s := start(t, opts)
				c := login(t, s, time.Hour)
				c.createLarge("/n", large)
				synctest.Wait()
				if (slow.reads.Load() > 0) != during.background {
					t.Fatalf("%d reads of a snapshot", slow.reads.Load())
				}
				began := time.Now()
				during.end(t, s, fs)
				if d := time.Since(began); d > during.within {
					t.Errorf("it took %v, with %d reads of the snapshot", d, slow.reads.Load())
				}
				s.Close()
				fs.SetFault(nil)
				fs.Crash()
				opts.setup.FS, opts.SnapshotRecords = fs, 0
				s = start(t, opts)
				if index := s.loop.log.Stats().SnapshotIndex; index != 0 {
					t.Errorf("a snapshot of record %d was kept", index)
				}
				c = login(t, s, time.Hour)
				for i := range large {
					if !c.exists(fmt.Sprint("/n", i)) {
						t.Fatalf("/n%d is lost", i)
					}
				}
			})
		})
	}
}
