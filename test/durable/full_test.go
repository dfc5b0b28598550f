package durable

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/zklock/zklock/test/zkreal"
	"github.com/zklock/zklock/zk"
)

// wantText checks that a text has these parts.
func wantText(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in %q", part, text)
		}
	}
}

// smallDisk is a file system of this many bytes, gone with the test.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		zkreal.Skip(t, "mounting a small file system needs root")
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		zkreal.Skip(t, "root, but may not mount: "+err.Error())
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// TestDiskFull: when the disk is full the server acknowledges nothing that it
// does not have, ends, and says which file and what to do. Once there is space
// it starts again with everything.
func TestDiskFull(t *testing.T) {
	disk := smallDisk(t, "3m")
	ballast := filepath.Join(disk, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(disk, "data")
	r := newRig(t, data)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()

	// The client must not be waited for once the server has ended.
	writing, stop := context.WithCancel(ctx)
	defer stop()
	w := NewWriter(r.dial(ctx), r.books, "/full", 1)
	written := make(chan error, 1)
	go func() { // ends with a lost answer, or with writing
		var over atomic.Bool
		for writing.Err() == nil {
			if err := w.Run(writing, &over); err != nil {
				written <- err
				return
			}
		}
		written <- nil
	}()
	if err := r.server.Wait(ctx); err == nil || errors.Is(err, ctx.Err()) {
		t.Fatalf("the server on a full disk: %v", err)
	}
	stop()
	if err := <-written; err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("the writer: %v", err)
	}
	if r.books.Acknowledged() < 100 {
		t.Errorf("%d changes before the disk was full", r.books.Acknowledged())
	}
	wantText(t, r.server.LogTail(), data+"/", "no space left on device", "free or replace the disk, then restart")

	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if err := r.server.Restart(); err != nil {
		t.Fatal(err)
	}
	auditor := r.dial(ctx)
	for _, err := range Audit(ctx, auditor, r.books) {
		t.Error(err)
	}
	if _, _, err := auditor.Create(ctx, "/after", nil, nil, zk.ModePersistent); err != nil {
		t.Error(err)
	}
	t.Logf("%d changes acknowledged until the disk was full", r.books.Acknowledged())
}
