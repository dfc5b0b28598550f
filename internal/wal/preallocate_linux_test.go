package wal_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/zklock/zklock/internal/wal"
)

// blocksOf returns the size of the only segment below dir, and the size of its
// allocated blocks, in bytes.
func blocksOf(t *testing.T, dir string) (size, blocks int64) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "log-*"))
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	info, err := os.Stat(names[0])
	if err != nil {
		t.Fatal(err)
	}
	return info.Size(), info.Sys().(*syscall.Stat_t).Blocks * 512
}

// TestPreallocationGrowsByBlocks inspects a segment between syncs: the file grows in
// steps and has its blocks before there are records for them, so syncs change only
// content.
func TestPreallocationGrowsByBlocks(t *testing.T) {
	const step = 128 << 10
	dir := t.TempDir()
	l, _, s := openOS(t, dir, wal.Options{Preallocate: step})
	grown := map[int64]bool{}
	for i := range 100 {
		appendAll(t, l, &s, fmt.Sprintf("%04000d", i))
		size, blocks := blocksOf(t, dir)
		if grown[size] = true; size%step != 0 || size < l.Stats().Bytes {
			t.Fatalf("batch %d: %d bytes in a file of %d, which grows by %d", i, l.Stats().Bytes, size, step)
		}
		if blocks < size {
			t.Fatalf("batch %d: blocks for %d bytes of %d", i, blocks, size)
		}
	}
	if len(grown) < 3 {
		t.Errorf("%d sizes, want one a step", len(grown))
	}
	must(t, l.Close())
	l, rec, again := openOS(t, dir, wal.Options{Preallocate: step})
	if again != s || rec.Torn != nil {
		t.Errorf("recovered %+v and %+v, want %+v", again, rec, s)
	}
	must(t, l.Close())
}

// TestFreeSpaceIsThatOfTheDisk compares the free space with that of statfs(2), which other
// processes may change meanwhile.
func TestFreeSpaceIsThatOfTheDisk(t *testing.T) {
	dir := t.TempDir()
	f, err := wal.OS{}.Create(filepath.Join(dir, "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var before, after syscall.Statfs_t
	for range 10 {
		berr := syscall.Statfs(dir, &before)
		free, known := f.(interface{ FreeSpace() (int64, bool) }).FreeSpace()
		must(t, errors.Join(berr, syscall.Statfs(dir, &after)))
		if before.Bavail != after.Bavail || after.Bavail == 0 {
			continue
		}
		if want := after.Bavail * uint64(after.Frsize); known && uint64(free) != want || known != (after.Blocks > 0) {
			t.Errorf("free space %d, known %v, want %d", free, known, want)
		}
		return
	}
	t.Skip("the free space changes all the time")
}
