package wal

import (
	"math"
	"testing"

	"golang.org/x/sys/unix"
)

// TestUsableSpace checks that the space that a file system reserves for root counts if nothing
// else is left. Otherwise a server of root on such a disk would never write a snapshot again.
func TestUsableSpace(t *testing.T) {
	for _, row := range []struct {
		st    unix.Statfs_t
		free  int64
		known bool
	}{
		{unix.Statfs_t{Frsize: 4096, Bsize: 1 << 20, Blocks: 100, Bfree: 30, Bavail: 20}, 20 * 4096, true},
		{unix.Statfs_t{Frsize: 4096, Blocks: 100, Bfree: 10}, 10 * 4096, true},
		{unix.Statfs_t{Frsize: 4096, Blocks: 100}, 0, true},
		{unix.Statfs_t{Bsize: 512, Blocks: 100, Bfree: 30, Bavail: 20}, 20 * 512, true},
		{unix.Statfs_t{Frsize: 4096, Blocks: 100, Bavail: math.MaxUint64}, math.MaxInt64 / 4096 * 4096, true},
		{unix.Statfs_t{Frsize: 4096}, 0, false},
		{unix.Statfs_t{Blocks: 100, Bavail: 20}, 0, false},
	} {
		if free, known := usable(&row.st); free != row.free || known != row.known {
			t.Errorf("%+v: %d, %v", row.st, free, known)
		}
	}
}
