package zklock_test

import (
	"context"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zktest"
)

// TestReadersShare: readers of several clients hold together; a writer alone.
func TestReadersShare(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		a, b := dial(t, srv).RWMutex("rw"), dial(t, srv).RWMutex("rw")
		r1, r2, r3 := acquire(t, a.Reader()), acquire(t, b.Reader()), acquire(t, b.Reader())
		locked(t, a.Writer())
		locked(t, b.Writer())
		release(t, r1)
		release(t, r3)
		locked(t, a.Writer())
		release(t, r2)
		w := acquire(t, a.Writer())
		locked(t, a.Reader())
		locked(t, b.Reader())
		locked(t, b.Writer())
		if w.Token() <= r3.Token() || w.Token() <= r2.Token() {
			t.Errorf("the writer's token %d is not above the readers' before it", w.Token())
		}
		release(t, w)
		free(t, b.Reader())
	})
}

// TestReadersQueue: a waiting writer stops later readers, and when it is done
// they all come in together.
func TestReadersQueue(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		a, b := dial(t, srv).RWMutex("rw"), dial(t, srv).RWMutex("rw")
		first := acquire(t, a.Reader())
		writer := waiting(t, t.Context(), b.Writer())
		later := []<-chan *zklock.Hold{waiting(t, t.Context(), a.Reader()), waiting(t, t.Context(), b.Reader()), waiting(t, t.Context(), a.Reader())}
		last := waiting(t, t.Context(), a.Writer())
		pending(t, "behind a reader", writer, last)
		pending(t, "behind a waiting writer", later...)
		release(t, first)
		w := got(t, "the writer", writer)
		pending(t, "behind a writer", later...)
		release(t, w)
		var readers []*zklock.Hold
		for _, r := range later {
			readers = append(readers, got(t, "a reader behind the writer", r))
		}
		for _, r := range readers {
			pending(t, "the last writer", last)
			release(t, r)
		}
		release(t, got(t, "the last writer", last))
	})
}

// TestCancelledWriterLetsReadersIn: readers behind a writer that gives up join
// those ahead of it.
func TestCancelledWriterLetsReadersIn(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		a, b := dial(t, srv).RWMutex("rw"), dial(t, srv).RWMutex("rw")
		first := acquire(t, a.Reader())
		ctx, cancel := context.WithCancel(t.Context())
		writer := waiting(t, ctx, b.Writer())
		reader, own := waiting(t, t.Context(), a.Reader()), waiting(t, t.Context(), b.Reader())
		pending(t, "behind a waiting writer", reader, own)
		cancel()
		if h := <-writer; h != nil {
			t.Fatal("a cancelled writer was granted")
		}
		release(t, got(t, "a reader behind the cancelled writer", reader))
		release(t, got(t, "another one", own))
		release(t, first)
	})
}

// TestOnePathIsOneQueue: mutexes, readers and writers with one name exclude each
// other as exclusive and shared ones.
func TestOnePathIsOneQueue(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		a, b := dial(t, srv), dial(t, srv)
		h := acquire(t, a.Mutex("one"))
		locked(t, b.RWMutex("one").Reader())
		locked(t, b.RWMutex("one").Writer())
		release(t, h)
		r := acquire(t, a.RWMutex("one").Reader())
		locked(t, b.Mutex("one"))
		behind := waiting(t, t.Context(), b.Mutex("one"))
		pending(t, "a mutex behind a reader", behind)
		release(t, r)
		release(t, got(t, "the mutex", behind))
	})
}

// TestForeignMutex: beside a mutex of Curator's or kazoo's, which does not see
// readers, a reader fails, be it ahead or behind; their read-write locks do see
// them.
func TestForeignMutex(t *testing.T) {
	const hex = "0123456789abcdef0123456789abcdef"
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		l, op := dial(t, srv).RWMutex("foreign"), srv.Dial(t)
		beside := dialWith(t, srv, zklock.Options{SharedBesideForeign: true}).RWMutex("foreign")
		dir := l.Reader().Path() + "/"
		free(t, l.Reader())
		for _, prefix := range []string{"_c_01234567-89ab-cdef-0123-456789abcdef-lock-", hex + "__lock__"} {
			node := strange(t, op, dir+prefix, "10.1.2.3")
			_, err := l.Reader().Acquire(t.Context())
			wants(t, "a reader behind "+prefix, err, zklock.ErrForeignMutex)
			_, err = l.Reader().TryAcquire(t.Context())
			wants(t, "trying behind "+prefix, err, zklock.ErrForeignMutex)
			locked(t, beside.Reader())
			locked(t, l.Writer())
			remove(t, op, node)
			free(t, l.Reader())
		}
		for _, prefix := range []string{"_c_01234567-89ab-cdef-0123-456789abcdef-__WRIT__"} {
			node := strange(t, op, dir+prefix, "10.1.2.3")
			w := waiting(t, t.Context(), l.Reader())
			pending(t, "behind "+prefix, w)
			remove(t, op, node)
			release(t, got(t, "the reader", w))
		}
		for _, prefix := range []string{"_c_01234567-89ab-cdef-0123-456789abcdef-__READ__", hex + "__rlock__"} {
			node := strange(t, op, dir+prefix, "10.1.2.3")
			free(t, l.Reader())
			locked(t, l.Writer())
			remove(t, op, node)
		}
	})
}

// TestReaderRepliesLost: whichever answer a writer or a reader loses, one entry is
// there while it holds, and none after.
func TestReaderRepliesLost(t *testing.T) {
	for _, op := range []string{"create2", "getChildren2", "delete", "multi"} {
		tidy(t, func(t *testing.T, srv *zktest.Server) {
			a, b := dial(t, srv).RWMutex("lost"), dial(t, srv).RWMutex("lost")
			for _, l := range []*zklock.Lock{a.Writer(), a.Reader(), b.Writer()} {
				f := srv.DropReply(zktest.Match{Op: op})
				h := acquire(t, l)
				f.Stop()
				// A reader may hold beside a znode of its own that is on its way out.
				time.Sleep(time.Second)
				if n := entries(t, b.Reader()); n != 1 {
					t.Errorf("%s lost: %d entries while held", op, n)
				}
				release(t, h)
			}
		})
	}
}

// TestForeignMutexWithJSON: that another library's data are JSON does not make its
// mutex heed readers.
func TestForeignMutexWithJSON(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		l, op := dial(t, srv).RWMutex("json"), srv.Dial(t)
		free(t, l.Reader())
		node := strange(t, op, l.Reader().Path()+"/_c_01234567-89ab-cdef-0123-456789abcdef-lock-", `{"leader":"app-7"}`)
		_, err := l.Reader().Acquire(t.Context())
		wants(t, "a reader behind it", err, zklock.ErrForeignMutex)
		_, err = l.Reader().TryAcquire(t.Context())
		wants(t, "a try behind it", err, zklock.ErrForeignMutex)
		remove(t, op, node)
	})
}
