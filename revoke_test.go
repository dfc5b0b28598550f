package zklock_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// asked reports whether the hold has received a release request.
func asked(h *zklock.Hold) bool {
	revoked := h.Revoked() // the first call asks the servers
	synctest.Wait()
	select {
	case <-revoked:
		return true
	default:
		return false
	}
}

// TestRevokeToken checks that only the holder with the token receives the release request.
func TestRevokeToken(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c, asker := dial(t, srv), dial(t, srv)
		for _, kind := range []struct {
			mine, others, asks *zklock.Lock
			znodes             int
		}{
			{c.RWMutex("a").Reader(), dial(t, srv).RWMutex("a").Reader(), asker.RWMutex("a").Writer(), 1},
			{c.Semaphore("s", 3).Permits(2), dial(t, srv).Semaphore("s", 3), asker.Semaphore("s", 3), 2},
		} {
			one, other := acquire(t, kind.mine), acquire(t, kind.others)
			for token, want := range map[int64]int{one.Token(): kind.znodes, one.Token() - 1: 0} {
				if told, err := kind.asks.RevokeToken(t.Context(), token); err != nil || len(told) != want {
					t.Errorf("%s: asked %+v, %v, want %d", kind.asks, told, err, want)
				}
			}
			if !asked(one) || asked(other) {
				t.Errorf("%s: the holder with the token was asked: %v, and the other: %v", kind.asks, asked(one), asked(other))
			}
			release(t, one)
			release(t, other)
		}
	})
}

// TestRevokeTokenOfUnreadableEntry checks that RevokeToken does not report that no holder has a
// token if it may not read the holder's entry.
func TestRevokeTokenOfUnreadableEntry(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		ann := zklock.Options{ACL: zk.CreatorACL(),
			Auth: []zk.Auth{{Scheme: "digest", Data: []byte("ann:secret")}}}
		for _, kind := range []func(c *zklock.Client) *zklock.Lock{
			func(c *zklock.Client) *zklock.Lock { return c.Mutex("a") },
			func(c *zklock.Client) *zklock.Lock { return c.RWMutex("a").Reader() },
			func(c *zklock.Client) *zklock.Lock { return c.Semaphore("s", 2) },
		} {
			asker := kind(dial(t, srv))
			free(t, asker) // creates the lock's znode, which all may read
			hidden := acquire(t, kind(dialWith(t, srv, ann)))
			told, err := asker.RevokeToken(t.Context(), hidden.Token())
			wants(t, asker.String(), err, zk.ErrNoAuth)
			if len(told) > 0 || asked(hidden) {
				t.Errorf("%s: asked %+v", asker, told)
			}
			release(t, hidden)
			if _, err := asker.RevokeToken(t.Context(), hidden.Token()); err != nil {
				t.Errorf("%s: after the release: %v", asker, err)
			}
		}
	})
}

// TestRevoke checks that each holder of every kind of lock receives the release request, keeps
// its hold, and keeps readable owner data.
func TestRevoke(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c, asker := dialWith(t, srv, zklock.Options{Owner: &zklock.Owner{Host: "here", PID: 7}}), dial(t, srv)
		for _, kind := range []struct {
			holders []*zklock.Lock
			asks    *zklock.Lock
			znodes  int
		}{
			{[]*zklock.Lock{c.Mutex("a")}, asker.Mutex("a"), 1},
			{[]*zklock.Lock{c.RWMutex("a").Reader(), c.RWMutex("a").Reader()}, asker.RWMutex("a").Writer(), 2},
			{[]*zklock.Lock{c.Semaphore("s", 3).Permits(2), c.Semaphore("s", 3)}, asker.Semaphore("s", 3), 3},
			{[]*zklock.Lock{c.NodeLock("n")}, asker.NodeLock("n"), 1},
			{[]*zklock.Lock{zklock.All(c.Mutex("a"), c.Mutex("b"))}, asker.Mutex("b"), 1},
		} {
			var holds []*zklock.Hold
			for _, l := range kind.holders {
				h := acquire(t, l)
				if asked(h) {
					t.Errorf("%s is revoked from the first", l)
				}
				holds = append(holds, h)
			}
			for range 2 { // a second request changes nothing
				told, err := kind.asks.Revoke(t.Context())
				if err != nil || len(told) != kind.znodes {
					t.Fatalf("%s: asked %+v, %v", kind.asks, told, err)
				}
				for _, e := range told {
					if !e.Holder || !e.Revoked || e.Owner.Host != "here" {
						t.Errorf("%s: asked %+v", kind.asks, e)
					}
				}
			}
			for _, h := range holds {
				if !asked(h) || h.Err() != nil {
					t.Errorf("%s: after the release request: %v", h.Node(), h.Err())
				}
				release(t, h)
			}
			for _, e := range inspect(t, kind.asks) {
				t.Errorf("%+v is left", e)
			}
		}
	})
}

// TestRevokeBeforeHolderWatches checks that a holder that watches late still receives the release
// request, and that a waiter receives it only after it is granted.
func TestRevokeBeforeHolderWatches(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c, asker := dial(t, srv), dial(t, srv)
		h := acquire(t, c.Mutex("a"))
		w := waiting(t, t.Context(), c.Mutex("a"))
		if told, err := asker.Mutex("a").Revoke(t.Context()); err != nil || len(told) != 1 || told[0].Node != h.Node() {
			t.Fatalf("%+v, %v", told, err)
		}
		time.Sleep(time.Second)
		if !asked(h) {
			t.Error("not told of what had been asked before")
		}
		second := c.Mutex("a").Reentrant()
		inner := reenter(t, h, second)
		if !asked(inner) {
			t.Error("a hold that re-entered is not told")
		}
		release(t, inner)
		release(t, h)
		next := got(t, "the waiter", w)
		if asked(next) {
			t.Error("the next one was not asked")
		}
		release(t, next)
		if told, err := asker.Mutex("a").Revoke(t.Context()); err != nil || len(told) != 0 {
			t.Errorf("a free lock: %+v, %v", told, err)
		}
		if asked(next) {
			t.Error("told after the release")
		}
	})
}

// TestMarksOfCuratorAndRecipe checks that the marks of Curator and of the recipe count as release
// requests, on any connection, and that other changes of the data do not.
func TestMarksOfCuratorAndRecipe(t *testing.T) {
	for word, means := range map[string]bool{
		"__REVOKE__": true, "unlock": true, `{"revoke":true}`: true, `{"revoke":true,"host":"x"}`: true,
		"": false, "revoke": false, "unlock it": false, `{"revoke":false}`: false, `{"host":"x","revoke":true}`: false,
	} {
		for _, cut := range []bool{false, true} {
			tidy(t, func(t *testing.T, srv *zktest.Server) {
				h, op := acquire(t, dial(t, srv).Mutex("a")), srv.Dial(t)
				if asked(h) {
					t.Error("revoked from the first")
				}
				set(t, op, h.Node(), "something else")
				if cut {
					srv.CutConnections()
				}
				if asked(h) {
					t.Error("revoked by another word")
				}
				set(t, op, h.Node(), word)
				time.Sleep(time.Second)
				if asked(h) != means {
					t.Errorf("%q (cut %v): revoked is %v", word, cut, asked(h))
				}
				release(t, h)
			})
		}
	}
}

// TestRevokeHolderOfOtherLibrary checks that a holder of another library gets Curator's mark, and
// that a zklock holder keeps its data after the mark.
func TestRevokeHolderOfOtherLibrary(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c, op := dialWith(t, srv, zklock.Options{Anonymous: true}), srv.Dial(t) // its requests are anonymous
		l := c.Mutex("a")
		free(t, l)
		for data, want := range map[string]string{
			"":                     "__REVOKE__",
			"10.0.0.1":             "__REVOKE__",
			`{"their":"json"}`:     "__REVOKE__",
			`{"host":"x"} {}`:      "__REVOKE__",
			`{"host":`:             "__REVOKE__",
			`{}`:                   `{"revoke":true}`,
			`{"host":"x","pid":3}`: "__REVOKE__",
			`{"host":"x","since":"2023-11-14T22:13:20Z"}`: `{"revoke":true,"host":"x","since":"2023-11-14T22:13:20Z"}`,
			"unlock":     "unlock",
			"__REVOKE__": "__REVOKE__",
		} {
			node := foreign(t, op, l.Path()+"/_c_01234567-89ab-cdef-0123-456789abcdef-lock-", data)
			told, err := l.Revoke(t.Context())
			if err != nil || len(told) != 1 {
				t.Fatalf("%q: %+v, %v", data, told, err)
			}
			after, _, err := op.Get(t.Context(), node)
			if err != nil || string(after) != want || strings.HasPrefix(want, "{") && !json.Valid(after) {
				t.Errorf("%q became %q, %v", data, after, err)
			}
			remove(t, op, node)
		}
	})
}

// TestRevokeForbidden checks that a client that may not set the data cannot request a
// release.
func TestRevokeForbidden(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		acl := []zk.ACL{{Perms: zk.PermAll &^ zk.PermWrite, Scheme: "world", ID: "anyone"}}
		h := acquire(t, dialWith(t, srv, zklock.Options{ACL: acl}).NodeLock("/mine"))
		_, err := dial(t, srv).NodeLock("/mine").Revoke(t.Context())
		wants(t, "a znode that may not be written", err, zk.ErrNoAuth)
		release(t, h)
		first := acquire(t, dialWith(t, srv, zklock.Options{ACL: acl}).RWMutex("/mine").Reader())
		second := acquire(t, dial(t, srv).RWMutex("/mine").Reader())
		told, err := dial(t, srv).Mutex("/mine").Revoke(t.Context())
		wants(t, "one of two that may not be written", err, zk.ErrNoAuth)
		if len(told) != 1 || told[0].Node != second.Node() || !asked(second) || asked(first) {
			t.Errorf("asked %+v", told)
		}
		release(t, first)
		release(t, second)
	})
}

// TestRevokedAnonymous checks that an anonymous holder of any lock is shown as a client of
// zklock, and can receive a release request.
func TestRevokedAnonymous(t *testing.T) {
	layout := zklock.Layout{Prefix: "host", Exclusive: "-W-", Shared: "-R-"}
	mutex := func(c *zklock.Client) *zklock.Lock { return c.Mutex("a") }
	for name, row := range map[string]struct {
		layout zklock.Layout
		lock   func(*zklock.Client) *zklock.Lock
	}{
		"mutex":          {lock: mutex},
		"semaphore":      {lock: func(c *zklock.Client) *zklock.Lock { return c.Semaphore("a", 2) }},
		"node lock":      {lock: func(c *zklock.Client) *zklock.Lock { return c.NodeLock("a") }},
		"kazoo's layout": {zklock.KazooLayout(), mutex},
		"custom layout":  {layout, mutex},
	} {
		t.Run(name, func(t *testing.T) {
			tidy(t, func(t *testing.T, srv *zktest.Server) {
				h := acquire(t, row.lock(dialWith(t, srv, zklock.Options{Layout: row.layout, Anonymous: true})))
				if asked(h) {
					t.Error("revoked from the first")
				}
				told, err := row.lock(dialWith(t, srv, zklock.Options{Layout: row.layout})).Revoke(t.Context())
				if err != nil || len(told) != 1 || told[0].Data != "" {
					t.Fatalf("%+v, %v", told, err)
				}
				owner := told[0].Owner
				if name == "custom layout" && owner.Layout != layout || name != "custom layout" && owner.Version != "zklock" {
					t.Errorf("the owner is %+v", owner)
				}
				if owner.Host+owner.User+owner.Command != "" || owner.PID != 0 || !owner.Since.IsZero() {
					t.Errorf("the owner is not anonymous: %+v", owner)
				}
				if !asked(h) {
					t.Error("not told")
				}
				release(t, h)
			})
		})
	}
}

// TestRevokedDowngraded checks that the release request reaches a hold whose znode has
// changed.
func TestRevokedDowngraded(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		l := dial(t, srv).RWMutex("a")
		h := acquire(t, l.Writer())
		if asked(h) {
			t.Error("revoked from the first")
		}
		if err := h.Downgrade(t.Context()); err != nil {
			t.Fatal(err)
		}
		if told, err := dial(t, srv).Mutex("a").Revoke(t.Context()); err != nil || len(told) != 1 || told[0].Token != h.Token() {
			t.Errorf("%+v, %v", told, err)
		}
		if !asked(h) {
			t.Error("not told")
		}
		release(t, h)
	})
}

// TestDowngradeKeepsReleaseRequest checks that a downgrade loses neither a release request nor
// its reason, whether the holder waits for one or not.
func TestDowngradeKeepsReleaseRequest(t *testing.T) {
	reusable := zklock.Layout{Prefix: "host", Exclusive: "-W-", Shared: "-R-"}
	for _, layout := range []zklock.Layout{{}, zklock.KazooLayout(), zklock.MixedLayout(), reusable} {
		for _, waits := range []bool{false, true} {
			tidy(t, func(t *testing.T, srv *zktest.Server) {
				o := zklock.Options{Layout: layout}
				h := acquire(t, dialWith(t, srv, o).RWMutex("a").Writer())
				if waits && asked(h) {
					t.Error("revoked from the first")
				}
				asker := dialWith(t, srv, o).RWMutex("a").Writer()
				if told, err := asker.RequestRelease(t.Context(), h.Token(), zklock.ReleaseRequest{Reason: "maintenance"}); err != nil || len(told) == 0 {
					t.Fatalf("%s: %+v, %v", layout, told, err)
				}
				if err := h.Downgrade(t.Context()); err != nil {
					t.Fatalf("%s: %v", layout, err)
				}
				if r, err := h.ReleaseRequest(t.Context()); err != nil || r.Reason != "maintenance" || !asked(h) {
					t.Errorf("%s, waits for a request: %t: %+v, %v, asked %t", layout, waits, r, err, asked(h))
				}
				if found := inspect(t, asker)[0]; !found.Revoked || found.Request.Reason != "maintenance" || found.Token != h.Token() {
					t.Errorf("%s: shown as %+v", layout, found)
				}
				release(t, h)
			})
		}
	}
}

// TestRevokeRaces checks that simultaneous release requests all succeed, and that a request
// during a release reaches no holder.
func TestRevokeRaces(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		l, askers := dial(t, srv).Mutex("a"), []*zklock.Lock{dial(t, srv).Mutex("a"), dial(t, srv).Mutex("a"), dial(t, srv).Mutex("a")}
		srv.Delay(10 * time.Millisecond)
		h := acquire(t, l)
		var all sync.WaitGroup
		for _, asker := range askers {
			all.Go(func() {
				if told, err := asker.Revoke(t.Context()); err != nil || len(told) != 1 {
					t.Errorf("%+v, %v", told, err)
				}
			})
		}
		all.Wait()
		release(t, h)
		none := 0
		for after := range 12 {
			h := acquire(t, l)
			all.Go(func() {
				told, err := askers[0].Revoke(t.Context())
				if err != nil {
					t.Error(err)
				}
				if len(told) == 0 {
					none++
				}
			})
			time.Sleep(time.Duration(after) * 7 * time.Millisecond)
			release(t, h)
			all.Wait()
		}
		if none == 0 || none == 12 {
			t.Errorf("%d of 12 releases were before the request: this shows nothing", none)
		}
		srv.Delay(0)
	})
}

// TestRevokeRepliesLost checks that a release request whose reply is lost is applied once.
func TestRevokeRepliesLost(t *testing.T) {
	for _, reply := range []bool{true, false} {
		tidy(t, func(t *testing.T, srv *zktest.Server) {
			h, asker := acquire(t, dial(t, srv).Mutex("a")), dial(t, srv).Mutex("a")
			f := drop(srv, reply, zktest.Match{Op: "setData"})
			if told, err := asker.Revoke(t.Context()); err != nil || len(told) != 1 {
				t.Errorf("reply %v: %+v, %v", reply, told, err)
			}
			<-f.Done()
			time.Sleep(time.Second)
			if !asked(h) {
				t.Errorf("reply %v: not told", reply)
			}
			release(t, h)
		})
	}
}

// TestRevokeWhileValuesChange checks a holder that publishes values faster than Revoke reads and
// writes: Revoke asks the other holders first, and this one as soon as it pauses.
func TestRevokeWhileValuesChange(t *testing.T) {
	for _, row := range []struct {
		changes, limit time.Duration // 0 means a context without a limit
		ends           time.Duration // the latest time at which Revoke returns
		want           error
		asked          int
	}{
		{changes: 5 * time.Second, limit: time.Minute, ends: 6 * time.Second, asked: 2},
		{changes: 5 * time.Second, ends: 6 * time.Second, asked: 2},
		{changes: time.Minute, limit: 10 * time.Second, ends: 10 * time.Second, want: context.DeadlineExceeded, asked: 1},
		{changes: 2 * time.Minute, ends: 31 * time.Second, want: zk.ErrBadVersion, asked: 1},
	} {
		tidy(t, func(t *testing.T, srv *zktest.Server) {
			far := srv.Route(t)
			asker := dialWith(t, srv, zklock.Options{DialContext: far.DialContext})
			busy, quiet := acquire(t, dial(t, srv).RWMutex("a").Reader()), acquire(t, dial(t, srv).RWMutex("a").Reader())
			far.Delay(25 * time.Millisecond)
			began := time.Now()
			var changes sync.WaitGroup
			changes.Go(func() {
				for n := 0; time.Since(began) < row.changes; n++ {
					setValue(t, busy, strconv.Itoa(n))
					time.Sleep(10 * time.Millisecond)
				}
			})
			ctx := t.Context()
			if row.limit > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, row.limit)
				defer cancel()
			}
			told, err := asker.Mutex("a").Revoke(ctx)
			if took := time.Since(began); !errors.Is(err, row.want) || len(told) != row.asked || took > row.ends {
				t.Errorf("%+v: asked %+v, %v after %v", row, told, err, took)
			}
			if !asked(quiet) || asked(busy) != (row.asked == 2) {
				t.Errorf("%+v: the busy holder was asked: %v, the other one: %v", row, asked(busy), asked(quiet))
			}
			changes.Wait()
			far.Delay(0)
			release(t, busy)
			release(t, quiet)
		})
	}
}

// TestReleaseRequestNamesClientAndReason checks that the holder and other clients can read which
// client requested the release and why, that the first request is kept, and that its text is
// escaped.
func TestReleaseRequestNamesClientAndReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		holder, asker := dial(t, srv), dial(t, srv)
		h := acquire(t, holder.Mutex("a"))
		revoked := h.Revoked()
		if r, err := h.ReleaseRequest(t.Context()); err != nil || r != (zklock.ReleaseRequest{}) {
			t.Errorf("without a request: %+v, %v", r, err)
		}
		by := zklock.Owner{Host: "web-3\x1b[2J", PID: 7, User: "ann", Command: "not sent"}
		l := asker.Mutex("a")
		if told, err := l.RequestRelease(t.Context(), h.Token(), zklock.ReleaseRequest{By: by, Reason: "maintenance\nat 5"}); err != nil || len(told) != 1 {
			t.Fatalf("%+v, %v", told, err)
		}
		<-revoked
		if _, err := l.Revoke(t.Context()); err != nil {
			t.Error(err)
		}
		want := zklock.ReleaseRequest{By: zklock.Owner{Host: `web-3\x1b[2J`, PID: 7, User: "ann"}, Reason: `maintenance\nat 5`}
		before, err := l.Inspect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if known, err := asker.InspectCached(t.Context(), l.Path(), before); err != nil || known[0].Request != want {
			t.Errorf("known entries: %+v, %v", known, err)
		}
		if r, err := h.ReleaseRequest(t.Context()); err != nil || r != want {
			t.Errorf("%+v, %v, want %+v", r, err, want)
		}
		if entries, err := l.Inspect(t.Context()); err != nil || len(entries) != 1 || entries[0].Request != want || entries[0].Owner.PID == 0 {
			t.Errorf("%+v, %v", entries, err)
		}
		if told, err := l.RequestRelease(t.Context(), h.Token()+1, zklock.ReleaseRequest{}); err != nil || len(told) != 0 {
			t.Errorf("another token: %+v, %v", told, err)
		}
		if _, err := l.RequestRelease(t.Context(), 0, zklock.ReleaseRequest{Reason: strings.Repeat("x", 257)}); !errors.Is(err, zklock.ErrInvalidOptions) {
			t.Errorf("a long reason: %v", err)
		}
		release(t, h)
		again := acquire(t, holder.Mutex("a"))
		if _, err := l.Revoke(t.Context()); err != nil {
			t.Error(err)
		}
		if r, err := again.ReleaseRequest(t.Context()); err != nil || r.By == (zklock.Owner{}) {
			t.Errorf("a request names %+v, %v", r.By, err)
		}
	})
}

// TestRevokeTokenIgnoresClaims checks that a release request for the token of a reader is not sent
// to another reader whose data claim that token.
func TestRevokeTokenIgnoresClaims(t *testing.T) {
	z := zktest.Start(t).Dial(t)
	c := zklock.New(z, nil)
	defer c.Close()
	l := c.RWMutex("claimed").Reader()
	hold, err := l.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	claim := fmt.Appendf(nil, `{"version":"zklock x","token":%d}`, hold.Token())
	const name = "/_c_0f8fad5b-d9cb-469f-a165-70867728950e-__READ__"
	node, _, err := z.Create(t.Context(), l.Path()+name, claim, zk.OpenACL(),
		zk.ModeEphemeralSequential)
	if err != nil {
		t.Fatal(err)
	}
	asked, err := l.RevokeToken(t.Context(), hold.Token())
	if err != nil || len(asked) != 1 || asked[0].Node != hold.Node() {
		t.Errorf("asked %v, %v", asked, err)
	}
	if data, _, err := z.Get(t.Context(), node); err != nil || string(data) != string(claim) {
		t.Errorf("the other reader's data are %q, %v", data, err)
	}
}
