package zkserver

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/internal/wal/memfs"
	"github.com/zklock/zklock/internal/wire"
)

// needsDescriptor reports whether a disk operation opens a descriptor.
func needsDescriptor(op memfs.Op) bool {
	switch op.Kind {
	case memfs.OpCreate, memfs.OpOpen, memfs.OpOpenWrite, memfs.OpOpenDir, memfs.OpLock:
		return true
	}
	return false
}

// failOpens fails the operations that open a descriptor.
func failOpens(op memfs.Op) memfs.Fault {
	if !needsDescriptor(op) {
		return memfs.Fault{}
	}
	return memfs.Fault{Err: fmt.Errorf("%s %s: %w", op.Kind, op.Name, syscall.EMFILE)}
}

// TestWritesContinueWithoutFreeDescriptors: without a free descriptor, the server still
// acknowledges writes, and starts neither a segment nor a snapshot. It does so when descriptors
// are free again.
func TestWritesContinueWithoutFreeDescriptors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts, fs := onMemory(t, 16)
		var log strings.Builder
		opts.Logger = logTo(&log)
		opts.SnapshotRecords, opts.segmentBytes = 100, 4000
		s := start(t, opts)
		c := login(t, s, time.Hour)
		fs.SetFault(failOpens)
		c.createWithData("/a", 500)
		synctest.Wait()
		st := s.loop.log.Stats()
		if st.Segments != 1 || st.SnapshotIndex != 0 || s.Stats().ReadOnly {
			t.Errorf("without descriptors: %+v, %+v", st, s.Stats())
		}
		if failed := s.Stats().SnapshotsFailed; failed != 1 {
			t.Errorf("%d snapshots failed, want 1 until the retry", failed)
		}
		fs.SetFault(nil)
		time.Sleep(snapshotRetry)
		c.createWithData("/b", 100)
		synctest.Wait()
		if st := s.loop.log.Stats(); st.Segments < 2 || st.SnapshotIndex < 500 {
			t.Errorf("with descriptors: %+v", st)
		}
		s.Close()
		if !strings.Contains(log.String(), "raise the limit of open files") {
			t.Errorf("the log does not say what to do: %s", log.String())
		}
	})
}

// TestFailedOpenAtEveryOperation fails each opening of a file, once or from then on. A running
// server is not affected; a starting one fails to start and loses nothing.
func TestFailedOpenAtEveryOperation(t *testing.T) {
	for _, lasts := range []bool{false, true} {
		sum := make(map[string]int)
		for k, hit := 0, true; hit; k++ {
			hit = false
			seen := 0
			fault := func(op memfs.Op) memfs.Fault {
				if !needsDescriptor(op) {
					return memfs.Fault{}
				}
				if seen++; seen-1 < k || seen-1 > k && !lasts {
					return memfs.Fault{}
				}
				hit = true
				return memfs.Fault{Err: fmt.Errorf("%s %s: %w", op.Kind, op.Name, syscall.EMFILE)}
			}
			var outcome string
			synctest.Test(t, func(t *testing.T) { outcome = runWithFault(t, fault) })
			if sum[outcome]++; t.Failed() {
				t.Fatalf("opening %d, lasting %v: %s", k, lasts, outcome)
			}
		}
		t.Logf("lasting %v: %v", lasts, sum)
		if sum["read-only"] > 0 || sum["not started"] < 3 || sum["unharmed"] < 10 {
			t.Errorf("lasting %v: %v", lasts, sum)
		}
	}
}

// TestStartWithoutDescriptorsSaysWhatToDo fails each opening of a file at the start. The error
// says what to do, and does not call the directory damaged.
func TestStartWithoutDescriptorsSaysWhatToDo(t *testing.T) {
	opts, fs := onMemory(t, 18)
	opts.SnapshotRecords, opts.segmentBytes = 1000, 2000
	s := start(t, opts)
	login(t, s, time.Minute).createWithData("/n", 30)
	must(t, s.Shutdown(t.Context()))
	refused := 0
	for hit := true; hit; refused++ {
		hit = false
		seen := 0
		fs.SetFault(func(op memfs.Op) memfs.Fault {
			if !needsDescriptor(op) {
				return memfs.Fault{}
			}
			if seen++; seen-1 < refused {
				return memfs.Fault{}
			}
			hit = true
			return failOpens(op)
		})
		s, err := New(&opts)
		if err == nil {
			s.Close()
			continue
		}
		if !hit || !errors.Is(err, syscall.EMFILE) || !strings.Contains(err.Error(), "raise the limit of open files") || strings.Contains(err.Error(), "move it away") {
			t.Errorf("without descriptors from opening %d on: %v", refused, err)
		}
	}
	if refused < 6 {
		t.Errorf("%d starts", refused)
	}
	fs.SetFault(nil)
	if !login(t, start(t, opts), time.Minute).exists("/n29") {
		t.Error("lost")
	}
}

// TestReadOnlyWaitsForDescriptors: the disk fails while no descriptor is free. The server reads
// its files when one is free.
func TestReadOnlyWaitsForDescriptors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts, fs := onMemory(t, 17)
		s := start(t, opts)
		c := login(t, s, time.Hour)
		c.create("/x", wire.ModePersistent)
		fs.SetFault(func(op memfs.Op) memfs.Fault {
			if op.Kind == memfs.OpSync {
				return memfs.Fault{Err: syscall.EIO}
			}
			return failOpens(op)
		})
		time.AfterFunc(3*time.Second, func() { breakDisk(fs, memfs.OpSync, syscall.EIO) })
		if err := c.tryCreate("/lost"); !closedError(err) {
			t.Fatalf("a write to a failed disk: %v", err)
		}
		if c = resume(t, s, c); !c.session.ReadOnly || !c.exists("/x") {
			t.Error("the server does not show what was acknowledged, read-only")
		}
		if err := c.tryCreate("/lost"); !errors.Is(err, wire.ErrNotReadOnly) {
			t.Errorf("a write to a read-only server: %v", err)
		}
	})
}
