package zklock_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

func resize(t *testing.T, c *zklock.Client, name string, n int) {
	t.Helper()
	if err := c.Resize(t.Context(), name, n); err != nil {
		t.Fatal(err)
	}
}

// dialZK returns a ZooKeeper client, as other programs use one.
func dialZK(t *testing.T, srv *zktest.Server, auth ...zk.Auth) *zk.Client {
	t.Helper()
	z, err := zk.Dial(t.Context(), srv.Servers(), &zk.Options{Auth: auth, DialContext: srv.DialContext})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = z.Close() })
	return z
}

// TestResize checks that a larger size grants the waiters that it has room for, and that a
// smaller size revokes no hold and grants no waiter until enough permits are released.
func TestResize(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c, other := dial(t, srv), dial(t, srv)
		a, b := c.ResizableSemaphore("sem"), other.ResizableSemaphore("sem")
		resize(t, c, "sem", 2)
		holds := []*zklock.Hold{acquire(t, a), acquire(t, b)}
		locked(t, b)
		waiters := []<-chan *zklock.Hold{waiting(t, t.Context(), b), waiting(t, t.Context(), a), waiting(t, t.Context(), b.Permits(2))}
		pending(t, "both permits are taken", waiters...)

		began := time.Now()
		resize(t, other, "sem", 4)
		holds = append(holds, got(t, "the third", waiters[0]), got(t, "the fourth", waiters[1]))
		if d := time.Since(began); d > time.Second {
			t.Errorf("granted %v after the change", d)
		}
		pending(t, "four of four permits are held", waiters[2])

		resize(t, c, "sem", 2)
		for _, h := range holds {
			if err := h.Verify(t.Context()); err != nil {
				t.Errorf("a smaller size: %v", err)
			}
		}
		for _, h := range holds[:3] {
			release(t, h)
			pending(t, "more permits are held than the new size has room for", waiters[2])
		}
		release(t, holds[3])
		release(t, got(t, "two permits", waiters[2]))
		free(t, a.Permits(2))
	})
}

// TestResizeEndsWaitForMorePermits checks that an acquire fails if the size, when it is set or
// later, is smaller than what it wants, and names both numbers.
func TestResizeEndsWaitForMorePermits(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c := dial(t, srv)
		l := c.ResizableSemaphore("sem")
		_, err := l.Acquire(t.Context())
		wants(t, "no size", err, zklock.ErrSize)
		_, err = l.TryAcquire(t.Context())
		wants(t, "a try without a size", err, zklock.ErrSize)
		resize(t, c, "sem", 3)
		_, err = l.Permits(4).TryAcquire(t.Context())
		wants(t, "more permits than there are", err, zklock.ErrSize)
		h := acquire(t, l)
		failed := make(chan error, 1)
		go func() {
			_, err := l.Permits(3).Acquire(t.Context())
			failed <- err
		}()
		synctest.Wait()
		resize(t, c, "sem", 2)
		err = <-failed
		wants(t, "a smaller size", err, zklock.ErrSize)
		if text := fmt.Sprint(err); !strings.Contains(text, "it is 2, and the acquire needs 3 permits") {
			t.Error(text)
		}
		release(t, h)
	})
}

// TestResizeTellsOtherNumbers checks that a client with a number of its own fails if it
// differs from the stored size while other clients hold permits by that size.
func TestResizeTellsOtherNumbers(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c, old := dial(t, srv), dial(t, srv)
		h := acquire(t, old.Semaphore("sem", 5)) // its number is noted
		resize(t, c, "sem", 2)
		_, err := old.Semaphore("sem", 5).Acquire(t.Context())
		wants(t, "the old number after a Resize", err, zklock.ErrPermits)
		free(t, old.Semaphore("sem", 2))
		next := acquire(t, c.ResizableSemaphore("sem"))
		locked(t, c.ResizableSemaphore("sem")) // it counts the permit of the old client
		release(t, h)
		_, err = old.Semaphore("sem", 5).Acquire(t.Context())
		wants(t, "the old number", err, zklock.ErrPermits)
		release(t, next)

		// The stored size counts, also after a client with another number was alone.
		h = acquire(t, old.Semaphore("sem", 5))
		next = acquire(t, c.ResizableSemaphore("sem"))
		_, err = old.Semaphore("sem", 5).Acquire(t.Context())
		wants(t, "the old number again", err, zklock.ErrPermits)
		locked(t, c.ResizableSemaphore("sem"))
		release(t, h)
		release(t, next)
	})
}

// TestResizeErrors checks invalid sizes, a name that is none, and data of other programs.
func TestResizeErrors(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c := dial(t, srv)
		kazoo := dialWith(t, srv, zklock.Options{Layout: zklock.KazooLayout()})
		wants(t, "no permits", c.Resize(t.Context(), "sem", 0), zklock.ErrInvalidLock)
		wants(t, "too many", c.Resize(t.Context(), "sem", 1<<20+1), zklock.ErrInvalidLock)
		wants(t, "kazoo's layout", kazoo.Resize(t.Context(), "sem", 2), zklock.ErrInvalidLock)
		wants(t, "an invalid name", c.Resize(t.Context(), "", 2), zklock.ErrInvalidName)
		done, cancel := context.WithCancel(t.Context())
		cancel()
		wants(t, "a done context", c.Resize(done, "sem", 2), context.Canceled)
		l := c.ResizableSemaphore("sem")
		wants(t, "too many at once", second(l.Permits(1025).Acquire(t.Context())), zklock.ErrInvalidLock)
		wants(t, "kazoo's layout", second(kazoo.ResizableSemaphore("sem").Acquire(t.Context())), zklock.ErrInvalidLock)

		resize(t, c, "sem", 2)
		z := dialZK(t, srv)
		for _, data := range []string{"", "3", "\x00\x00\x00\x00", "\xff\xff\xff\xff", "\x80\x00\x00\x00", "\x00\x00\x00\x00\x03"} {
			if _, err := z.Set(t.Context(), l.Path()+"/size", []byte(data), -1); err != nil {
				t.Fatal(err)
			}
			wants(t, fmt.Sprintf("the data %q", data), second(l.Acquire(t.Context())), zklock.ErrSize)
			wants(t, fmt.Sprintf("a try with the data %q", data), second(l.TryAcquire(t.Context())), zklock.ErrSize)
		}
		resize(t, c, "sem", 1)
		free(t, l)
	})
}

func second(_ *zklock.Hold, err error) error { return err }

// TestDeletedSizeEndsWait checks that a waiter fails if the size is deleted, and that a new
// one counts.
func TestDeletedSizeEndsWait(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c := dial(t, srv)
		l := c.ResizableSemaphore("sem")
		resize(t, c, "sem", 1)
		h := acquire(t, l)
		failed := make(chan error, 1)
		go func() {
			_, err := l.Acquire(t.Context())
			failed <- err
		}()
		synctest.Wait()
		if err := dialZK(t, srv).Delete(t.Context(), l.Path()+"/size", -1); err != nil {
			t.Fatal(err)
		}
		wants(t, "without a size", <-failed, zklock.ErrSize)
		release(t, h)
		resize(t, c, "sem", 1)
		free(t, l)
	})
}

// TestInspectResizedSemaphore checks that all permits are shown as held after the size became
// smaller, except those of the acquire that waits for room.
func TestInspectResizedSemaphore(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c, other := dial(t, srv), dial(t, srv)
		l := c.ResizableSemaphore("sem")
		resize(t, c, "sem", 3)
		holds := []*zklock.Hold{acquire(t, l), acquire(t, l), acquire(t, l)}
		resize(t, c, "sem", 1)
		ctx, cancel := context.WithCancel(t.Context())
		w := waiting(t, ctx, other.ResizableSemaphore("sem").Permits(1))
		pending(t, "three of one", w)
		for what, read := range map[string]func() ([]zklock.Entry, error){
			"the lock":    func() ([]zklock.Entry, error) { return l.Inspect(t.Context()) },
			"another":     func() ([]zklock.Entry, error) { return c.Semaphore("sem", 2).Inspect(t.Context()) },
			"by its path": func() ([]zklock.Entry, error) { return c.Inspect(t.Context(), "sem") },
		} {
			entries, err := read()
			held := 0
			for _, e := range entries {
				if e.Holder {
					held++
				}
			}
			if err != nil || len(entries) != 4 || held != 3 {
				t.Errorf("%s: %d of %d entries hold, %v", what, held, len(entries), err)
			}
		}
		cancel()
		<-w
		for _, h := range holds {
			release(t, h)
		}
		synctest.Wait() // for the delete of the canceled acquire's entries
		if entries, err := c.Inspect(t.Context(), "sem"); err != nil || len(entries) > 0 {
			t.Errorf("without holders: %v, %v", entries, err)
		}
	})
}

// TestSizeKeepsAccess checks that the znode of the size gets the ACL of the znode above it,
// so that only clients that may use the semaphore can resize it.
func TestSizeKeepsAccess(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		auth := zk.Auth{Scheme: "digest", Data: []byte("ann:secret")}
		ann := dialWith(t, srv, zklock.Options{Auth: []zk.Auth{auth}})
		z := dialZK(t, srv, auth)
		if _, _, err := z.Create(t.Context(), "/ann", nil, zk.CreatorACL(), zk.ModePersistent); err != nil {
			t.Fatal(err)
		}
		resize(t, ann, "/ann/team/sem", 2)
		h := acquire(t, ann.ResizableSemaphore("/ann/team/sem").Permits(2))
		eve := dial(t, srv)
		wants(t, "another client's Resize", eve.Resize(t.Context(), "/ann/team/sem", 9), zk.ErrNoAuth)
		_, err := eve.ResizableSemaphore("/ann/team/sem").TryAcquire(t.Context())
		wants(t, "another client's try", err, zk.ErrNoAuth)
		release(t, h)
	})
}
