package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// TestInvalidNamesAreRefused checks that invalid names are refused before any I/O.
func TestInvalidNamesAreRefused(t *testing.T) {
	srv := zktest.Start(t)
	c := dial(t, srv)
	srv.Refuse(true)
	srv.CutConnections() // no I/O would succeed now
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	bad := []string{
		"", "/", "//", "a//b", "a/", "/a/", ".", "..", "a/../b", "a/./b", "/..",
		"nul\x00", "\x01", "tab\t", "\x1f", "\x7f", "\u0085", "\u009f", "\ud7ff\ue000", "\uf8ff", "\ufff0", "\uffff", "\U0001F600",
		"\xff", "\xed\xa0\x80", strings.Repeat("x", 513), strings.Repeat("x/", 16) + "x", "zookeeper", "zookeeper/quota", "/zookeeper", "/zookeeper/x",
		"a/x__lock__0000000000", "x-lock-0000000001/b",
	}
	for _, name := range bad {
		for what, use := range map[string]func() error{
			"Acquire":    func() error { _, err := c.Mutex(name).Acquire(ctx); return err },
			"TryAcquire": func() error { _, err := c.Mutex(name).TryAcquire(ctx); return err },
			"Inspect":    func() error { _, err := c.Mutex(name).Inspect(ctx); return err },
			"Do": func() error {
				return zklock.Do(ctx, c.Mutex(name), func(context.Context, *zklock.Hold) error { return nil })
			},
		} {
			if err := use(); !errors.Is(err, zklock.ErrInvalidName) {
				t.Errorf("%s of %q: %v", what, name, err)
			}
		}
	}
	for name, path := range map[string]string{
		"demo": "/zklock/demo", "a/b": "/zklock/a/b", "/a/b": "/a/b", "ünïcode": "/zklock/ünïcode", "...": "/zklock/...",
		strings.Repeat("x", 512): "/zklock/" + strings.Repeat("x", 512), "a zookeeper": "/zklock/a zookeeper",
	} {
		if l := c.Mutex(name); l.Path() != path || l.String() != path {
			t.Errorf("%q is %q", name, l.Path())
		}
	}
}

// TestErrorTexts checks that errors say what failed, on what, and why, and name a lock once.
func TestErrorTexts(t *testing.T) {
	ended := &zklock.Error{Op: "hold", Path: "/a", Err: zklock.ErrReleased}
	for want, err := range map[string]error{
		"zklock: guard /a: the hold was released":            &zklock.Error{Op: "guard", Path: "/a", Err: ended},
		"zklock: guard /b: hold /a: the hold was released":   &zklock.Error{Op: "guard", Path: "/b", Err: ended},
		"zklock: acquire /a: the lock is held or waited for": &zklock.Error{Op: "acquire", Path: "/a", Err: zklock.ErrLocked},
		"zklock: dial: the client is closed":                 &zklock.Error{Op: "dial", Err: zklock.ErrClosed},
	} {
		if err.Error() != want {
			t.Errorf("%q, want %q", err, want)
		}
	}
}

// TestLongestNames checks that the path of a lock is also a valid name, for tokens by name and
// for re-entered holds.
func TestLongestNames(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c := dial(t, srv)
		for _, name := range []string{strings.Repeat("x", 512), strings.Repeat("x/", 15) + "x"} {
			for i, l := range []*zklock.Lock{c.Mutex(name), c.Semaphore(name, 1), c.RWMutex(name).Reader()} {
				h := acquire(t, l)
				if h.TokenOf(l.Path()) != h.Token() || h.TokenOf(name) != h.Token() {
					t.Errorf("%.20s: tokens %d, %d, not %d", name, h.TokenOf(l.Path()), h.TokenOf(name), h.Token())
				}
				if i == 0 {
					in := reenter(t, h, l.Reentrant())
					if in.Token() != h.Token() {
						t.Errorf("%.20s: token %d, after re-entering %d", name, h.Token(), in.Token())
					}
					release(t, in)
				}
				if found, err := c.Inspect(t.Context(), l.Path()); err != nil || len(found) == 0 {
					t.Errorf("%.20s: %+v, %v", name, found, err)
				}
				release(t, h)
			}
		}
		for _, bad := range []string{"/zklock/" + strings.Repeat("x", 513), "/zklock/" + strings.Repeat("x/", 16) + "x", "/" + strings.Repeat("x/", 16) + "x"} {
			_, err := c.Mutex(bad).TryAcquire(t.Context())
			wants(t, bad[:20], err, zklock.ErrInvalidName)
		}
	})
}

// TestErrorsOfBadNames checks that an error says what is wrong with a name, in one line
// without control characters, however long the name is.
func TestErrorsOfBadNames(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c, op := dial(t, srv), srv.Dial(t)
		for name, want := range map[string]string{
			"": "it is empty", "a//b": "two slashes in a row", "a/../b": `may not be ".."`, "zookeeper/a": "belongs to the servers",
			"nul\x00": "U+0000 at byte 3", "\x1b]0;title\a": "U+001B at byte 0", "a\nlevel=INFO msg=fine": "U+000A at byte 1", "\xff": "not UTF-8",
			strings.Repeat("x", 1<<20): "at most 512", strings.Repeat("\n", 1<<20): "at most 512", strings.Repeat("x/", 20) + "x": "at most 16 are allowed",
		} {
			_, err := c.Mutex(name).Acquire(t.Context())
			if wants(t, want, err, zklock.ErrInvalidName); !strings.Contains(err.Error(), want) {
				t.Errorf("%.20q: %.200q, want %q", name, err, want)
			}
			inOneLine(t, err)
			if _, _, err = op.Get(t.Context(), "/a\n"+name); !errors.Is(err, zk.ErrInvalidPath) {
				t.Errorf("%.20q: %.200v", name, err)
			}
			inOneLine(t, err)
		}
	})
}

// inOneLine fails unless the error is one line without control characters.
func inOneLine(t *testing.T, err error) {
	t.Helper()
	text := err.Error()
	if len(text) > 3000 || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\ufffd' }) {
		t.Errorf("%d bytes: %.200q", len(text), text)
	}
}

const (
	javaGUID   = "_c_[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
	pythonGUID = "[0-9a-f]{32}"
)

// TestLayoutNames checks that each layout writes the names of its recipe, and that
// holders exclude each other.
func TestLayoutNames(t *testing.T) {
	for _, row := range []struct {
		layout                zklock.Layout
		mutex, reader, writer []string // patterns of the znodes
	}{
		{zklock.Layout{}, []string{javaGUID + "-lock-"}, []string{javaGUID + "-__READ__"}, []string{javaGUID + "-__WRIT__"}},
		{zklock.KazooLayout(), []string{pythonGUID + "__lock__"}, []string{pythonGUID + "__rlock__"}, []string{pythonGUID + "__lock__"}},
		{zklock.MixedLayout(), []string{javaGUID + "-lock-", pythonGUID + "__lock__"},
			[]string{javaGUID + "-__READ__", pythonGUID + "__rlock__"}, []string{javaGUID + "-__WRIT__", pythonGUID + "__lock__"}},
		{zklock.LatchLayout(), []string{javaGUID + "-latch-"}, nil, []string{javaGUID + "-latch-"}},
		{zklock.WriteLockLayout(), []string{"x--?[0-9]+-"}, nil, []string{"x--?[0-9]+-"}},
		{zklock.Layout{Prefix: "host", Exclusive: "-W-", Shared: "-R-"}, []string{"host-W-"}, []string{"host-R-"}, []string{"host-W-"}},
		{zklock.Layout{Exclusive: "lock"}, []string{"lock"}, nil, []string{"lock"}},
		{zklock.Layout{Exclusive: "_lock_", Shared: "_read_", InParent: true}, []string{"printer_lock_"}, []string{"printer_read_"}, []string{"printer_lock_"}},
		{zklock.Layout{Prefix: "x-", Exclusive: "#", InParent: true}, []string{"x-printer#"}, nil, []string{"x-printer#"}},
	} {
		t.Run(row.layout.String(), func(t *testing.T) {
			tidy(t, func(t *testing.T, srv *zktest.Server) {
				o := zklock.Options{Layout: row.layout}
				a, b := dialWith(t, srv, o), dialWith(t, srv, o)
				const name = "/office/printer"
				parent := name
				if row.layout.InParent {
					parent = path.Dir(name)
				}
				for _, kind := range []struct {
					l     *zklock.Lock
					names []string
				}{{a.Mutex(name), row.mutex}, {a.RWMutex(name).Reader(), row.reader}, {a.RWMutex(name).Writer(), row.writer}} {
					if kind.names == nil {
						_, err := kind.l.Acquire(t.Context())
						wants(t, "a reader", err, zklock.ErrInvalidLock)
						continue
					}
					h := acquire(t, kind.l)
					if len(h.Nodes()) != len(kind.names) {
						t.Fatalf("znodes: %v", h.Nodes())
					}
					for i, node := range h.Nodes() {
						if !regexp.MustCompile("^" + regexp.QuoteMeta(parent) + "/" + kind.names[i] + `\d{10}$`).MatchString(node) {
							t.Errorf("%s is not a %s", node, kind.names[i])
						}
					}
					locked(t, b.Mutex(name))
					locked(t, b.RWMutex(name).Writer())
					if h.TokenOf(name) != h.Token() || kind.l.Path() != name {
						t.Errorf("the token of %s is %d, not %d", kind.l, h.TokenOf(name), h.Token())
					}
					for _, e := range inspect(t, b.Mutex(name)) {
						if !e.Holder || e.Path != name || e.Token != h.Token() {
							t.Errorf("%+v", e)
						}
					}
					w := waiting(t, t.Context(), b.Mutex(name))
					pending(t, "after a holder", w)
					release(t, h)
					release(t, got(t, "the waiter", w))
				}
			})
		})
	}
}

// TestKnownLayoutsExcludeEachOther checks that zklock waits for the entries of all known layouts.
func TestKnownLayoutsExcludeEachOther(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		layouts := []zklock.Layout{{}, zklock.KazooLayout(), zklock.MixedLayout(), zklock.LatchLayout(), zklock.WriteLockLayout()}
		var clients []*zklock.Client
		for _, layout := range layouts {
			clients = append(clients, dialWith(t, srv, zklock.Options{Layout: layout}))
		}
		for i := range layouts {
			for j := range layouts {
				h := acquire(t, clients[i].Mutex("/fleet"))
				w := waiting(t, t.Context(), clients[j].Mutex("/fleet"))
				pending(t, fmt.Sprintf("%s after %s", layouts[j], layouts[i]), w)
				release(t, h)
				release(t, got(t, fmt.Sprintf("%s after %s", layouts[j], layouts[i]), w))
			}
		}
	})
}

// TestParentsForKazoo checks that kazoo's layout creates persistent parents, because
// kazoo's locks fail when a container is collected.
func TestParentsForKazoo(t *testing.T) {
	for _, layout := range []zklock.Layout{zklock.KazooLayout(), zklock.MixedLayout()} {
		tidy(t, func(t *testing.T, srv *zktest.Server) {
			l := dialWith(t, srv, zklock.Options{Layout: layout}).Mutex("/kazoos/lock")
			free(t, l)
			time.Sleep(5 * time.Minute) // the servers have deleted containers by now
			if _, _, err := srv.Dial(t).Get(t.Context(), l.Path()); err != nil {
				t.Errorf("%s: %v", layout, err)
			}
		})
	}
}

// TestInParent checks that locks in one parent are distinguished by their names, even if one name
// is a prefix of another.
func TestInParent(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c := dialWith(t, srv, zklock.Options{Layout: zklock.Layout{Exclusive: "_lock_", InParent: true}})
		op := srv.Dial(t)
		names := []string{"/office/printer", "/office/print", "/office/printer_lock", "/office/2"}
		var holds []*zklock.Hold
		for _, name := range names {
			h := acquire(t, c.Mutex(name))
			locked(t, c.Mutex(name))
			holds = append(holds, h)
		}
		other := foreign(t, op, "/office/scanner_lock_", "") // a lock of another program
		for i, name := range names {
			found, err := c.Inspect(t.Context(), name)
			if err != nil || len(found) != 1 || found[0].Node != holds[i].Node() || !found[0].Holder || found[0].Path != name {
				t.Errorf("%s: %+v, %v", name, found, err)
			}
		}
		_, err := c.Mutex(names[0]).Acquire(under(t, holds[0]))
		wants(t, "one's own lock", err, zklock.ErrReentry)
		release(t, reenter(t, holds[0], c.Mutex(names[0]).Reentrant()))
		if _, err := c.Mutex(names[1]).TryAcquire(under(t, holds[0])); errors.Is(err, zklock.ErrReentry) || !errors.Is(err, zklock.ErrLocked) {
			t.Errorf("the neighbour's lock: %v", err)
		}
		all := []*zklock.Lock{c.Mutex(names[0]), c.Mutex(names[1])}
		locked(t, zklock.All(all...))
		for _, h := range holds {
			release(t, h)
		}
		h := acquire(t, zklock.All(all...))
		if h.TokenOf(names[0]) != h.Token() || h.TokenOf(names[1]) != h.Token() || h.TokenOf(names[2]) != 0 {
			t.Error("the tokens of an All in one parent")
		}
		release(t, h)
		remove(t, op, other)
		for _, bad := range []string{"/printer", "/office/a_lock_b", "/office_lock_0000000001/x", "/office/_lock_"} {
			_, err := c.Mutex(bad).Acquire(t.Context())
			wants(t, bad, err, zklock.ErrInvalidName)
		}
	})
}

// TestCustomLayoutIgnoresOtherLayouts checks that only entries of a custom layout
// contend in it.
func TestCustomLayoutIgnoresOtherLayouts(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c, op := dialWith(t, srv, zklock.Options{Layout: zklock.Layout{Prefix: "me", Exclusive: "-W-", Shared: "-R-"}}), srv.Dial(t)
		l := c.RWMutex("/book")
		free(t, l.Writer())
		var others []string
		for _, prefix := range []string{"_c_01234567-89ab-cdef-0123-456789abcdef-lock-", "you-X-", "-W"} {
			others = append(others, foreign(t, op, "/book/"+prefix, ""))
		}
		free(t, l.Writer())
		theirs := foreign(t, op, "/book/you-R-", "")
		locked(t, l.Writer())
		free(t, l.Reader())
		if found := inspect(t, l.Reader()); len(found) != 4 || !found[0].Holder || found[0].Node != theirs || found[3].Mode != zklock.Stray {
			t.Errorf("%+v", found)
		}
		for _, node := range append(others, theirs) {
			remove(t, op, node)
		}
		_, err := c.Mutex("/a-W-0000000001/b").Acquire(t.Context())
		wants(t, "a name like an entry", err, zklock.ErrInvalidName)
	})
}

// TestCustomLayoutRefusesGuards checks that Verify and Guard are refused: after a delete of the
// whole lock, the znode of another client can have the same name.
func TestCustomLayoutRefusesGuards(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		o := zklock.Options{Layout: zklock.Layout{Prefix: "same", Exclusive: "-W-", Shared: "-R-"}}
		a, b, op := dialWith(t, srv, o), dialWith(t, srv, o), srv.Dial(t)
		read := ledger(t, op)
		h := acquire(t, a.Mutex("/shared/lock"))
		remove(t, op, h.Node())
		remove(t, op, "/shared/lock")
		other := acquire(t, b.Mutex("/shared/lock"))
		if other.Node() != h.Node() {
			t.Fatalf("%s after %s: this shows nothing", other.Node(), h.Node())
		}
		wants(t, "guard", h.Guard(t.Context(), write("stale")), zklock.ErrInvalidLock)
		wants(t, "verify", h.Verify(t.Context()), zklock.ErrInvalidLock)
		release(t, other)
		for _, l := range []*zklock.Lock{a.RWMutex("/shared/book").Reader(), zklock.All(a.Mutex("/shared/one"), a.Semaphore("/shared/s", 1))} {
			h := acquire(t, l)
			wants(t, l.String(), h.Verify(t.Context()), zklock.ErrInvalidLock)
			release(t, h)
		}
		if got := read(); got == "stale" {
			t.Error("written under a hold that was lost")
		}
		// A semaphore's znodes have GUIDs in any layout.
		h = acquire(t, a.Semaphore("/shared/s", 1))
		if err := h.Guard(t.Context(), write("sure")); err != nil || read() != "sure" {
			t.Errorf("%v, the znode says %q", err, read())
		}
		release(t, h)
	})
}

// TestCustomLayoutRepliesLost checks that an acquire recognizes its znodes although
// their names have no GUID.
func TestCustomLayoutRepliesLost(t *testing.T) {
	for _, op := range []string{"create2", "getChildren2", "delete", "getData"} {
		for skip := range 2 {
			tidy(t, func(t *testing.T, srv *zktest.Server) {
				o := zklock.Options{Layout: zklock.Layout{Prefix: "same", Exclusive: "-W-", Shared: "-R-"}}
				a, b := dialWith(t, srv, o).RWMutex("/lost"), dialWith(t, srv, o).RWMutex("/lost")
				other := acquire(t, b.Reader())
				f := srv.DropReply(zktest.Match{Op: op, Skip: skip})
				w := waiting(t, t.Context(), a.Writer())
				release(t, other)
				h := <-w
				locked(t, b.Reader())
				release(t, h)
				f.Stop()
				time.Sleep(time.Second)
				free(t, b.Writer())
			})
		}
	}
}

// TestInvalidLayoutsAreRefused checks that invalid layouts are refused with a reason, before the
// client connects.
func TestInvalidLayoutsAreRefused(t *testing.T) {
	broken := zklock.KazooLayout()
	broken.Prefix = "x"
	for what, o := range map[string]zklock.Options{
		"no marker":              {Layout: zklock.Layout{Prefix: "x"}},
		"no exclusive marker":    {Layout: zklock.Layout{Shared: "-R-"}},
		"in parent alone":        {Layout: zklock.Layout{InParent: true}},
		"one marker for both":    {Layout: zklock.Layout{Exclusive: "-", Shared: "-"}},
		"one within the other":   {Layout: zklock.Layout{Exclusive: "lock-", Shared: "rlock-"}},
		"the other way round":    {Layout: zklock.Layout{Exclusive: "rlock-", Shared: "lock-"}},
		"a prefix with a marker": {Layout: zklock.Layout{Prefix: "a-W-b", Exclusive: "-W-"}},
		"a slash":                {Layout: zklock.Layout{Exclusive: "-/-"}},
		"a slash in the prefix":  {Layout: zklock.Layout{Prefix: "a/b", Exclusive: "-W-"}},
		"a control character":    {Layout: zklock.Layout{Exclusive: "-\x00-"}},
		"not UTF-8":              {Layout: zklock.Layout{Exclusive: "-W-", Shared: "\xff"}},
		"a number":               {Layout: zklock.Layout{Exclusive: "00"}},
		"too long":               {Layout: zklock.Layout{Exclusive: strings.Repeat("x", 513)}},
		"kazoo's, changed":       {Layout: broken},
		"Curator's mutexes":      {Layout: zklock.Layout{Prefix: "host-", Exclusive: "lock-", Shared: "read-"}},
		"Curator's readers":      {Layout: zklock.Layout{Prefix: "host", Exclusive: "-W-", Shared: "-__READ__"}},
		"Curator's latches":      {Layout: zklock.Layout{Exclusive: "-latch-"}},
		"Curator's, in parent":   {Layout: zklock.Layout{Exclusive: "-lock-", InParent: true}},
		"kazoo's locks":          {Layout: zklock.Layout{Prefix: "host_", Exclusive: "_lock__"}},
		"WriteLock's":            {Layout: zklock.Layout{Prefix: "x-17", Exclusive: "-"}},
		"a negative delay":       {LockDelay: -1},
		"a delay and WriteLock":  {LockDelay: time.Second, Layout: zklock.WriteLockLayout()},
		"a delay without GUIDs":  {LockDelay: time.Second, Layout: zklock.Layout{Exclusive: "-W-"}},
	} {
		_, err := zklock.Dial(t.Context(), "127.0.0.1:1", &o)
		wants(t, what, err, zklock.ErrInvalidOptions)
		c := zklock.New(zktest.Start(t).Dial(t), &o)
		for _, l := range []*zklock.Lock{c.Mutex("a"), c.RWMutex("a").Reader(), c.Semaphore("a", 1), c.NodeLock("a"), zklock.All(c.Mutex("a"))} {
			_, err := l.TryAcquire(t.Context())
			wants(t, what, err, zklock.ErrInvalidOptions)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestWriteLockRecipe checks that every known layout waits for the entries of ZooKeeper's
// WriteLock recipe, and that a lock for which that recipe would not wait is refused next to them.
func TestWriteLockRecipe(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c, op := dial(t, srv), srv.Dial(t)
		kazoo := dialWith(t, srv, zklock.Options{Layout: zklock.KazooLayout()})
		path := c.Mutex("next-to").Path()
		free(t, c.Mutex("next-to"))
		for _, session := range []string{"72057594037927936", "-5764607523034234880", "0100a1b2c3d4e5f6"} {
			theirs := foreign(t, op, path+"/x-"+session+"-", "\x124")
			var waits []<-chan *zklock.Hold
			for _, layout := range []zklock.Layout{{}, zklock.MixedLayout(), zklock.LatchLayout(), zklock.WriteLockLayout()} {
				w := waiting(t, t.Context(), dialWith(t, srv, zklock.Options{Layout: layout}).Mutex("next-to"))
				pending(t, layout.String(), w)
				waits = append(waits, w)
			}
			for what, l := range map[string]*zklock.Lock{"a writer": c.RWMutex("next-to").Writer(), "kazoo's mutex": kazoo.Mutex("next-to")} {
				_, err := l.Acquire(t.Context())
				wants(t, what, err, zklock.ErrWriteLock)
			}
			_, err := c.RWMutex("next-to").Reader().Acquire(t.Context())
			wants(t, "a reader", err, zklock.ErrForeignMutex)
			synctest.Wait() // until the entries of the refused acquires are deleted
			found := inspect(t, c.Mutex("next-to"))
			if len(found) != 6 || !found[0].Holder || found[0].Node != theirs || found[0].Mode != zklock.Exclusive {
				t.Errorf("%+v", found)
			}
			remove(t, op, theirs)
			for _, w := range waits {
				release(t, got(t, "the next one", w))
			}
		}
		// Locks of zklock in that layout wait for readers and writers, which are granted.
		own := dialWith(t, srv, zklock.Options{Layout: zklock.WriteLockLayout()})
		h := acquire(t, own.Mutex("next-to"))
		w := waiting(t, t.Context(), c.RWMutex("next-to").Reader())
		pending(t, "a reader after ours", w)
		release(t, h)
		h = got(t, "the reader", w)
		locked(t, own.Mutex("next-to"))
		release(t, h)
	})
}

// TestLeaderLatch checks that the holder in this layout is the leader of Curator's LeaderLatch,
// which is the first entry.
func TestLeaderLatch(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c, op := dialWith(t, srv, zklock.Options{Layout: zklock.LatchLayout()}), srv.Dial(t)
		create(t, op, "/leader", nil)
		theirs := foreign(t, op, "/leader/_c_01234567-89ab-cdef-0123-456789abcdef-latch-", "node-1")
		w := waiting(t, t.Context(), c.Mutex("/leader"))
		pending(t, "after their leader", w)
		found, err := c.Inspect(t.Context(), "/leader")
		if err != nil || len(found) != 2 || !found[0].Holder || found[0].Data != "node-1" {
			t.Errorf("%+v, %v", found, err)
		}
		remove(t, op, theirs)
		release(t, got(t, "ours", w))
	})
}

// TestAmbiguousNamesAreRefused checks that a name is refused if its entries would be taken for
// something else, for every kind of lock.
func TestAmbiguousNamesAreRefused(t *testing.T) {
	_, err := zklock.Dial(t.Context(), "127.0.0.1:1", &zklock.Options{Layout: zklock.Layout{Prefix: "a_lock", Exclusive: "_lockX", Shared: "X-"}})
	wants(t, "a reader that looks like a damaged writer", err, zklock.ErrInvalidOptions)
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c := dialWith(t, srv, zklock.Options{Layout: zklock.Layout{Exclusive: "_lockX", Shared: "X-", InParent: true}})
		for what, l := range map[string]*zklock.Lock{
			"a reader like a neighbour's writer": c.RWMutex("/office/a_lock").Reader(),
			"a semaphore like an entry":          c.Semaphore("/office/a_lockX0000000001", 2),
			"a semaphore below an entry":         c.Semaphore("/office/aX-0000000001/s", 2),
			"a node lock like an entry":          c.NodeLock("/office/a_lockX0000000001"),
			"a name like an entry":               c.Mutex("/office/a_lockX0000000001"),
		} {
			_, err := l.TryAcquire(t.Context())
			wants(t, what, err, zklock.ErrInvalidName)
		}
		layout := zklock.Layout{Prefix: "a-", Exclusive: "lock-", InParent: true}
		hyphen := dialWith(t, srv, zklock.Options{Layout: layout})
		_, err := hyphen.Mutex("/office/printer-").TryAcquire(t.Context())
		wants(t, "a name that makes entries like Curator's", err, zklock.ErrInvalidName)
		free(t, hyphen.Mutex("/office/printer"))
		h := acquire(t, c.RWMutex("/office/a_lock_").Reader())
		free(t, c.Mutex("/office/a"))
		release(t, h)
		free(t, c.Semaphore("/office/a", 2))
		free(t, c.NodeLock("/office/node"))
	})
}
