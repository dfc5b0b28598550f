package zklock_test

import (
	"context"
	"errors"
	"path"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/internal/queue"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// tidy runs f in a bubble with a server. f releases what it acquires; when it is
// done, the servers must have nothing left but parents.
func tidy(t *testing.T, f func(t *testing.T, srv *zktest.Server)) {
	t.Helper()
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		f(t, srv)
		if !t.Failed() {
			onlyParents(t, srv)
		}
	})
}

// onlyParents fails if any znode is left that a claim made, once what goes on in
// the background is over.
func onlyParents(t *testing.T, srv *zktest.Server) {
	t.Helper()
	time.Sleep(timeout) // on the bubble's clock
	onlyParentsNow(t, srv)
}

// onlyParentsNow is onlyParents at this moment.
func onlyParentsNow(t *testing.T, srv *zktest.Server) {
	t.Helper()
	op := srv.Dial(t)
	var walk func(dir string)
	walk = func(dir string) {
		children, _, err := op.Children(t.Context(), dir)
		if errors.Is(err, zk.ErrNoNode) {
			return // a parent that the server has collected
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, child := range children {
			at := path.Join(dir, child)
			if at == "/zookeeper" {
				continue
			}
			_, stat, err := op.Get(t.Context(), at)
			if errors.Is(err, zk.ErrNoNode) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			_, entry := queue.ParseName(child)
			_, record := queue.ParseName(child + "0000000000")
			if stat.EphemeralOwner != 0 || entry == queue.Contender || record == queue.Contender {
				t.Errorf("%s is left", at)
			}
			walk(at)
		}
	}
	walk("/")
	if err := op.Close(); err != nil {
		t.Error(err)
	}
}

// dialWith is dial with options of the test's own.
func dialWith(t *testing.T, srv *zktest.Server, o zklock.Options) *zklock.Client {
	t.Helper()
	if o.SessionTimeout == 0 {
		o.SessionTimeout = timeout
	}
	o.DialContext = srv.DialContext
	c, err := zklock.Dial(t.Context(), srv.Servers(), &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// waiting starts an Acquire and returns when it has come as far as it can. The
// hold comes on the channel, nil if the acquire failed.
func waiting(t *testing.T, ctx context.Context, l *zklock.Lock) <-chan *zklock.Hold {
	t.Helper()
	got := make(chan *zklock.Hold, 1)
	go func() { // ends with the acquire
		h, err := l.Acquire(ctx)
		if err != nil && ctx.Err() == nil {
			t.Errorf("acquire %s: %v", l, err)
		}
		got <- h
	}()
	synctest.Wait()
	return got
}

// pending fails if an acquire is over.
func pending(t *testing.T, what string, waiters ...<-chan *zklock.Hold) {
	t.Helper()
	synctest.Wait()
	for i, w := range waiters {
		select {
		case h := <-w:
			t.Fatalf("%s: number %d was granted: %v", what, i, h)
		default:
		}
	}
}

// got returns the hold of a waiter whose turn it must be.
func got(t *testing.T, what string, w <-chan *zklock.Hold) *zklock.Hold {
	t.Helper()
	synctest.Wait()
	select {
	case h := <-w:
		if h == nil {
			t.Fatalf("%s: failed", what)
		}
		return h
	default:
		t.Fatalf("%s: not granted", what)
		return nil
	}
}

// wants fails unless err is of this kind and an Error.
func wants(t *testing.T, what string, err, kind error) {
	t.Helper()
	var e *zklock.Error
	if !errors.Is(err, kind) || !errors.As(err, &e) {
		t.Errorf("%s: %v, want %v", what, err, kind)
	}
}

// locked fails unless a try finds the lock taken.
func locked(t *testing.T, l *zklock.Lock) {
	t.Helper()
	if h, err := l.TryAcquire(t.Context()); !errors.Is(err, zklock.ErrLocked) {
		t.Errorf("trying %s: %v, %v", l, h, err)
	}
}

// free fails unless a try gets the lock.
func free(t *testing.T, l *zklock.Lock) {
	t.Helper()
	h, err := l.TryAcquire(t.Context())
	if err != nil {
		t.Errorf("trying %s: %v", l, err)
		return
	}
	release(t, h)
}

// under returns a context that carries the hold.
func under(t *testing.T, h *zklock.Hold) context.Context {
	t.Helper()
	ctx, cancel := h.Context(t.Context())
	t.Cleanup(cancel)
	return ctx
}

// inspect returns the lock's entries.
func inspect(t *testing.T, l *zklock.Lock) []zklock.Entry {
	t.Helper()
	found, err := l.Inspect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// strange makes an ephemeral znode as another library would.
func strange(t *testing.T, op *zk.Client, prefix, data string) string {
	t.Helper()
	node, _, err := op.Create(t.Context(), prefix, []byte(data), nil, zk.ModeEphemeralSequential)
	if err != nil {
		t.Fatal(err)
	}
	return node
}

func remove(t *testing.T, op *zk.Client, node string) {
	t.Helper()
	if err := op.Delete(t.Context(), node, -1); err != nil {
		t.Fatal(err)
	}
}
