package zkserver

import (
	"fmt"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/internal/wal/memfs"
)

// TestFaultAfterFault lets a disk fail in one life of a server and in the next one
// again, with a loss of power or only the end of the process between: the third
// life has all that either has acknowledged and nothing that was refused.
func TestFaultAfterFault(t *testing.T) {
	outcomes := make(map[string]int)
	const operations = 160 // about as many as a life has
	for k := 0; k < operations; k += scale(5, 1) {
		for j := k % 7; j < operations; j += scale(23, 3) {
			synctest.Test(t, func(t *testing.T) { outcomes[twoSickLives(t, k, j)]++ })
			if t.Failed() {
				t.Fatalf("operations %d and %d", k, j)
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

// twoSickLives runs a server whose first operation to fail on the disk is k, then
// another one in which it is j, and looks at what a third one has.
func twoSickLives(t *testing.T, k, j int) (outcome string) {
	opts, fs := onMemory(t, uint64(k*1000+j))
	opts.Logger = discard()
	opts.SnapshotRecords, opts.SnapshotsKept, opts.segmentBytes = 12, 1, 2000
	var acknowledged, refused []string
	for life, at := range []int{k, j} {
		if life > 0 {
			outcome += ", "
		}
		// Every other disk takes no writes from then on.
		fs.SetFault(failFrom(at, k%2 == 0, (7*k+j)%120))
		s, err := New(opts)
		if err != nil {
			outcome += "not started"
		} else {
			a, r, o := writeSome(t, s, fmt.Sprintf("/life%d-", life))
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
	c := login(t, s, time.Minute)
	for _, path := range acknowledged {
		if !c.exists(path) {
			t.Errorf("%s: %s was acknowledged and is gone", outcome, path)
		}
	}
	for _, path := range refused {
		if c.exists(path) {
			t.Errorf("%s: %s was refused and is there", outcome, path)
		}
	}
	return outcome
}

// failFrom makes the operation fail that has the number at from now on, having
// done keep bytes of it, and with lasts all writes and syncs after it.
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
