package zklock_test

import (
	"context"
	"errors"
	"path"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// TestDiskFails: when the server's disk is full or fails, a hold ends at its
// deadline, whoever waits goes on waiting, and nobody else gets the lock. After
// the disk is mended and the server restarted, the waiter does, with a higher
// token.
func TestDiskFails(t *testing.T) {
	for name, fail := range map[string]func(*zktest.Server, testing.TB){
		"full": (*zktest.Server).FillDisk,
		"EIO":  func(s *zktest.Server, t testing.TB) { s.FailDisk(t, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zktest.Server) { holdOnSickDisk(t, srv, fail) })
		})
	}
}

func holdOnSickDisk(t *testing.T, srv *zktest.Server, fail func(*zktest.Server, testing.TB)) {
	holder, waiter := dial(t, srv), dial(t, srv)
	held := acquire(t, holder.Mutex("disk"))
	granted := make(chan *zklock.Hold, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { // ends when the lock is granted or ctx ends
		if h, err := waiter.Mutex("disk").Acquire(ctx); err == nil {
			granted <- h
		}
	}()
	synctest.Wait()
	fail(srv, t)
	began := time.Now()
	// What the clients write next, if only to live, finds the disk.
	select {
	case <-held.Done():
	case <-granted:
		t.Fatal("the waiter was granted the lock")
	case <-time.After(2 * timeout):
		t.Fatal("the hold did not end")
	}
	if took := time.Since(began); took < timeout/2 || took > timeout {
		t.Errorf("the hold ended %v after the disk failed, want it at its deadline, at most %v", took, timeout)
	}
	if err := held.Err(); !errors.Is(err, zklock.ErrLost) {
		t.Errorf("the hold's error: %v", err)
	}
	if st := srv.Server().Stats(); !st.ReadOnly || st.Sessions != 2 {
		t.Errorf("read-only %v, %d sessions: none may end while nothing can be recorded", st.ReadOnly, st.Sessions)
	}
	// A client that takes a read-only server sees who held it; no other comes in.
	guest := srv.Dial(t, func(o *zk.Options) { o.ReadOnly = true })
	if names, _, err := guest.Children(t.Context(), path.Dir(held.Node())); err != nil || len(names) != 2 {
		t.Errorf("entries of the lock: %q, %v", names, err)
	}
	if _, _, err := guest.Create(t.Context(), "/x", nil, nil, zk.ModePersistent); !errors.Is(err, zk.ErrNotReadOnly) {
		t.Errorf("a write: %v", err)
	}
	time.Sleep(10 * timeout)
	select {
	case <-granted:
		t.Fatal("the waiter was granted the lock by a read-only server")
	default:
	}
	srv.MendDisk(t)
	srv.Restart(t)
	select {
	case next := <-granted:
		if next.Token() <= held.Token() {
			t.Errorf("token %#x after %#x", next.Token(), held.Token())
		}
		release(t, next)
	case <-time.After(4 * timeout):
		t.Error("nobody was granted the lock after the restart")
	}
}
