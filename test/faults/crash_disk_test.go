package faults

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/zklock/zklock/zk"
)

// wantText checks that a text has all parts.
func wantText(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in %q", part, text)
		}
	}
}

// TestServerWithFullDisk checks that a server with a full disk acknowledges no change that is
// not on disk, logs which file failed and what to do, and continues read-only. A restart on
// the full disk fails with an error that says what to do, or succeeds with all data. After
// space is freed, the server starts with all data.
func TestServerWithFullDisk(t *testing.T) {
	t.Parallel()
	disk := needSmall(t, "3m")
	ballast := filepath.Join(disk, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(disk, "data")
	r := newDurable(t, data)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	reader, readOnly := r.reader(ctx)
	r.fill(ctx, readOnly)
	if r.ledger.Acknowledged() < 100 {
		t.Errorf("%d changes before the disk was full", r.ledger.Acknowledged())
	}
	wantText(t, r.server.LogTail(), data+"/", "no space left on device", "read-only from now on", "free or replace the disk, then restart")
	for _, err := range AuditReadOnly(ctx, reader, r.ledger) {
		t.Error(err)
	}
	if _, _, err := reader.Create(ctx, "/never", nil, nil, zk.ModePersistent); !errors.Is(err, zk.ErrNotReadOnly) {
		t.Errorf("a write to a read-only server: %v", err)
	}

	if err := r.server.Restart(ctx); err != nil {
		wantText(t, err.Error(), data, "no space left on device", "free")
	} else {
		for _, err := range Audit(ctx, r.dial(ctx), r.ledger) {
			t.Error(err)
		}
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if err := r.server.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	auditor := r.dial(ctx)
	for _, err := range Audit(ctx, auditor, r.ledger) {
		t.Error(err)
	}
	if _, _, err := auditor.Create(ctx, "/after", nil, nil, zk.ModePersistent); err != nil {
		t.Error(err)
	}
	t.Logf("%d changes acknowledged until the disk was full", r.ledger.Acknowledged())
}

// TestServerWithReadOnlyDisk checks that the server continues read-only, with all
// acknowledged data, after the file system becomes read-only, for example because ext4 found
// a disk error. A start fails, with the reason, until the file system is writable again.
func TestServerWithReadOnlyDisk(t *testing.T) {
	t.Parallel()
	data := filepath.Join(needSmall(t, "300m"), "data")
	r := newDurable(t, data)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	reader, readOnly := r.reader(ctx)
	_, writers := r.writers(ctx, 1, 1, 1)
	for range 100 {
		if err := writers[0].change(ctx); err != nil {
			t.Fatal(err)
		}
	}
	restore := makeReadOnly(t, data)
	r.rollOver(ctx, readOnly)
	wantText(t, r.server.LogTail(), data+"/", "read-only file system", "read-only from now on")
	for _, err := range AuditReadOnly(ctx, reader, r.ledger) {
		t.Error(err)
	}
	if _, _, err := reader.Create(ctx, "/never", nil, nil, zk.ModePersistent); !errors.Is(err, zk.ErrNotReadOnly) {
		t.Errorf("a write to a read-only server: %v", err)
	}
	if err := r.server.Restart(ctx); err == nil {
		t.Error("a server started on a read-only file system")
	} else {
		wantText(t, err.Error(), data, "read-only file system", "mounted read-only", "check the disk")
	}
	restore()
	if err := r.server.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	for _, err := range Audit(ctx, r.dial(ctx), r.ledger) {
		t.Error(err)
	}
}

// makeReadOnly mounts a directory read-only over itself, until restore is called. Files that
// are already open for writing stay writable.
func makeReadOnly(t *testing.T, dir string) (restore func()) {
	t.Helper()
	if err := syscall.Mount(dir, dir, "", syscall.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	restore = sync.OnceFunc(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(restore)
	if err := syscall.Mount("", dir, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	return restore
}

// rollOver writes until the log needs a new segment and the server is read-only.
func (r *durable) rollOver(ctx context.Context, readOnly <-chan struct{}) {
	r.Helper()
	c := r.dial(ctx)
	if _, _, err := c.Create(ctx, "/large", nil, nil, zk.ModePersistent); err != nil {
		r.Fatal(err)
	}
	var err error
	for range 100 {
		writing, stop := context.WithTimeout(ctx, crashTimeout)
		_, err = c.Set(writing, "/large", make([]byte, 1_000_000), -1)
		stop()
		if err != nil {
			break
		}
	}
	if err == nil {
		r.Fatal("100 MB of changes needed no new segment")
	}
	select {
	case <-readOnly:
		return
	case <-r.server.Done():
	case <-ctx.Done():
	}
	r.Fatalf("the server is not read-only after %v; its log ends:\n%s", err, r.server.LogTail())
}

// reader returns a client that accepts a read-only server. The channel is closed when the
// client is connected to one.
func (r *durable) reader(ctx context.Context) (*zk.Client, <-chan struct{}) {
	r.Helper()
	c, err := zk.Dial(ctx, r.address, &zk.Options{SessionTimeout: crashTimeout, ReadOnly: true})
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { _ = c.Close() })
	readOnly := make(chan struct{})
	closed := sync.OnceFunc(func() { close(readOnly) })
	r.Cleanup(c.Listen(zk.Listener{State: func(s zk.StateChange) {
		if s.State == zk.ConnectedReadOnly {
			closed()
		}
	}}))
	return c, readOnly
}

// fill writes until the server is read-only.
func (r *durable) fill(ctx context.Context, readOnly <-chan struct{}) {
	r.Helper()
	// Do not wait for the client once the server refuses writes.
	writing, stop := context.WithCancel(ctx)
	defer stop()
	w := NewWriter(r.dial(ctx), r.ledger, "/full", 1)
	written := make(chan error, 1)
	go func() { // ends with writing
		var over atomic.Bool
		for writing.Err() == nil {
			if err := w.Run(writing, &over); err != nil {
				written <- err
				return
			}
		}
		written <- nil
	}()
	select {
	case <-readOnly:
	case <-ctx.Done():
		r.Errorf("the disk is not full yet; the server's log ends:\n%s", r.server.LogTail())
	}
	stop()
	if err := <-written; err != nil && !errors.Is(err, context.Canceled) {
		r.Errorf("the writer: %v", err)
	}
}
