package zktest

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/zklock/zklock/internal/wal/memfs"
)

// FillDisk makes every write to the disk fail as on a full disk, with ENOSPC, until
// RepairDisk. It needs data in memory, which is the default; otherwise the test fails.
func (s *Server) FillDisk(t testing.TB) {
	t.Helper()
	s.FailDisk(t, syscall.ENOSPC)
}

// FailDisk makes every write and every sync of the disk fail with err until RepairDisk. A
// nil err means EIO. At the first failure, the server becomes read-only, and stays so until
// Restart: see package zkserver. FailDisk needs data in memory, which is the default;
// otherwise the test fails.
func (s *Server) FailDisk(t testing.TB, err error) {
	t.Helper()
	if err == nil {
		err = syscall.EIO
	}
	s.breakDisk(t, func(op memfs.Op) memfs.Fault {
		switch op.Kind {
		case memfs.OpWrite, memfs.OpSync, memfs.OpSyncDir, memfs.OpCreate, memfs.OpTruncate:
			return memfs.Fault{Err: fmt.Errorf("%v %s: %w", op.Kind, op.Name, err)}
		}
		return memfs.Fault{}
	})
}

// RepairDisk ends FillDisk and FailDisk.
func (s *Server) RepairDisk(t testing.TB) {
	t.Helper()
	s.breakDisk(t, nil)
}

func (s *Server) breakDisk(t testing.TB, f func(memfs.Op) memfs.Fault) {
	t.Helper()
	if s.fs == nil {
		t.Fatal("zktest: the server's data is not in memory: leave out OnDisk and Volatile to break its disk")
	}
	s.fs.SetFault(f)
}
