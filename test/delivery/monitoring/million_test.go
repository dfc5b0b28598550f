package monitoring

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/inspect"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
	"github.com/zklock/zklock/zkui"
)

// others is the number of znodes that are not part of a lock.
const others = 1_000_000

// largeTree is a server with these znodes and a few locks.
type largeTree struct {
	srv   *zktest.Server
	route *zktest.Route // counts reads
	reads atomic.Int64
}

// newLargeTree creates half of the znodes below one parent, the rest in a tree of four levels,
// and locks at several levels.
func newLargeTree(t *testing.T) *largeTree {
	t.Helper()
	c := &largeTree{srv: zktest.Start(t, zktest.Volatile)}
	// Bypass the relay, which reads every frame. The locks must survive on a busy machine.
	z := c.srv.Dial(t, func(o *zk.Options) {
		o.DialContext, o.SessionTimeout = c.srv.Server().DialContext, 40*time.Second
	})
	createAll := func(n int, at func(i int) string) {
		results := make(chan error, n)
		for i := range n {
			z.Go(zk.CreateOp(at(i), nil, nil, zk.ModePersistent), func(r zk.Result) { results <- r.Err })
		}
		for range n {
			if err := <-results; err != nil {
				t.Fatal(err)
			}
		}
	}
	begun := time.Now()
	for _, path := range []string{"/wide", "/tree", "/apps", "/apps/billing", "/zklock"} {
		createAll(1, func(int) string { return path })
	}
	createAll(500, func(i int) string { return fmt.Sprintf("/tree/%d", i) })
	createAll(500*10, func(i int) string { return fmt.Sprintf("/tree/%d/%d", i/10, i%10) })
	createAll(500*10*100-5505, func(i int) string { return fmt.Sprintf("/tree/%d/%d/%d", i/1000, i/100%10, i%100) })
	createAll(500_000, func(i int) string { return fmt.Sprintf("/wide/%d", i) })
	t.Logf("%d znodes in %v", others, time.Since(begun))
	c.route = c.srv.Route(t)
	c.route.DelayFunc(func(f zktest.Frame) time.Duration {
		if f.Direction == zktest.ToServer && (f.Op == "exists" || strings.HasPrefix(f.Op, "get")) {
			c.reads.Add(1)
		}
		return 0
	})
	locks := zklock.New(z, nil)
	t.Cleanup(func() { _ = locks.Close() })
	for _, name := range []string{"/apps/billing/nightly", "/apps/report", "/tree/7/3/deep", "mine"} {
		if _, err := locks.Mutex(name).Acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// TestMillionOtherZnodes lists the locks of a tree with a million other znodes.
func TestMillionOtherZnodes(t *testing.T) {
	if testing.Short() {
		t.Skip("it creates a million znodes")
	}
	c := newLargeTree(t)
	t.Run("inspect", func(t *testing.T) { inspectLargeTree(t, c) })
	t.Run("page", func(t *testing.T) { showLargeTree(t, c) })
}

// fewReads limits the number of reads before the first lock is found.
const fewReads = 1000

// inspectLargeTree checks that a bounded number of reads finds the locks with few siblings,
// and that a prefix finds a lock in a large subtree.
func inspectLargeTree(t *testing.T, c *largeTree) {
	z := c.route.Dial(t)
	r := inspect.NewReader(z, zklock.Layout{})
	defer r.Close()

	c.reads.Store(0)
	begun := time.Now()
	var first atomic.Int64
	found, err := r.List(t.Context(), "/", inspect.ListOptions{OnLock: func(*inspect.Lock) { first.CompareAndSwap(0, c.reads.Load()) }})
	took, reads := time.Since(begun), c.reads.Load()
	t.Logf("list from the root: %d reads in %v, the first lock after %d: %v", reads, took, first.Load(), err)
	if !errors.Is(err, inspect.ErrTooMany) || reads > 20_000+100 || first.Load() > fewReads {
		t.Errorf("%d reads, the first lock after %d, %v", reads, first.Load(), err)
	}
	var paths []string
	for _, l := range found.Locks {
		paths = append(paths, l.Path)
	}
	for _, want := range []string{"/apps/billing/nightly", "/apps/report", "/zklock/mine"} {
		if !strings.Contains(strings.Join(paths, " "), want) {
			t.Errorf("found %q, without %s", paths, want)
		}
	}

	c.reads.Store(0)
	found, err = r.List(t.Context(), "/tree/7", inspect.ListOptions{})
	if reads := c.reads.Load(); err != nil || len(found.Locks) != 1 || reads > 1100 {
		t.Errorf("below a prefix: %d locks after %d reads: %v", len(found.Locks), reads, err)
	}

	// Reading one znode does not read its whole subtree.
	for path, holders := range map[string]int{"/tree/7/3/deep": 1, "/apps/report": 1, "/zklock/mine": 1, "/tree": 0, "/wide": -1} {
		c.reads.Store(0)
		begun = time.Now()
		l, err := r.ReadDetail(t.Context(), path)
		took, reads := time.Since(begun), c.reads.Load()
		t.Logf("%s: %d reads in %v: %v", path, reads, took, err)
		if reads > 600 {
			t.Errorf("%s: %d reads", path, reads)
		}
		if holders < 0 && errors.Is(err, inspect.ErrTooManyChildren) {
			continue
		}
		if err != nil || len(l.Holders()) != holders {
			t.Errorf("%s: %+v, %v", path, l, err)
		}
	}
}

// showLargeTree checks that the page shows the first locks while it reads, reports that the
// list is incomplete, and shows later locks.
func showLargeTree(t *testing.T, c *largeTree) {
	z := c.route.Dial(t)
	c.reads.Store(0)
	begun := time.Now()
	h, err := zkui.New(z, &zkui.Options{Prefix: "/"})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	get := func() string {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/?format=json", nil))
		return w.Body.String()
	}
	until := func(what string, is func(text string) bool) {
		t.Helper()
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for begun := time.Now(); ; <-tick.C {
			if text := get(); is(text) {
				return
			} else if time.Since(begun) > patience {
				t.Fatalf("no %s in %.2000s", what, text)
			}
		}
	}
	until("lock", func(text string) bool {
		if strings.Contains(text, `"walked":true`) {
			t.Fatal("the page showed no lock before the end of its first listing")
		}
		return strings.Contains(text, "/apps/report")
	})
	t.Logf("the first locks are shown after %d reads and %v", c.reads.Load(), time.Since(begun))
	until("notice that the list is incomplete", func(text string) bool {
		return strings.Contains(text, `"walked":true`) && strings.Contains(text, `"complete":false`) && strings.Contains(text, "prefix")
	})
	reads := c.reads.Load()
	t.Logf("first listing: %d reads in %v", reads, time.Since(begun))
	if reads > 20_000+100 {
		t.Errorf("%d reads for the first listing", reads)
	}
	locks := zklock.New(c.srv.Dial(t), nil)
	defer locks.Close()
	if _, err := locks.Mutex("/tree/400/9/late").Acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	until("later lock", func(text string) bool { return strings.Contains(text, "/tree/400/9/late") })
	if more := c.reads.Load() - reads; more > 20 {
		t.Errorf("%d reads to show a later lock", more)
	}
}
