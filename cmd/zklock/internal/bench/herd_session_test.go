package bench

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// openSessions opens n metered sessions, which end with the test.
func openSessions(t *testing.T, srv *zktest.Server, n int) []*session {
	t.Helper()
	sessions, err := dialSessions(t.Context(), &HerdConfig{Servers: srv.Servers(), Options: zk.Options{DialContext: srv.DialContext}}, n)
	if err != nil || len(sessions) != n {
		t.Fatalf("%d sessions of %d: %v", len(sessions), n, err)
	}
	t.Cleanup(func() { closeSessions(sessions) })
	return sessions
}

// TestSessionsAreMetered checks that each session counts its own traffic without the
// handshake.
func TestSessionsAreMetered(t *testing.T) {
	sessions := openSessions(t, zktest.Start(t), 3)
	if got := total(sessions); got != (Traffic{}) {
		t.Errorf("%+v was counted before anything was asked", got)
	}
	for range 2 {
		if _, _, err := sessions[1].client.Exists(t.Context(), "/a"); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []int64{0, 2, 0} {
		if got := sessions[i].meter.read(); got.Requests != want || (got.Bytes > 0) != (want > 0) {
			t.Errorf("session %d has counted %+v, want %d requests", i, got, want)
		}
	}
	if got := total(sessions); got != sessions[1].meter.read() {
		t.Errorf("the total is %+v", got)
	}
}

// TestEventsAreCountedWhereTheyArrive checks that the session with the watch counts the
// notification, and that quiet does not return before.
func TestEventsAreCountedWhereTheyArrive(t *testing.T) {
	sessions := openSessions(t, zktest.Start(t), 4)
	const path = "/watched"
	for _, s := range sessions[:3] {
		if _, _, _, err := s.client.ExistsW(t.Context(), path); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := sessions[3].client.Create(t.Context(), path, nil, nil, zk.ModePersistent); err != nil {
		t.Fatal(err)
	}
	if err := quiet(t.Context(), sessions); err != nil {
		t.Fatal(err)
	}
	for i, want := range []int64{1, 1, 1, 0} {
		if got := sessions[i].meter.read().Notifications; got != want {
			t.Errorf("session %d was told %d times, want %d", i, got, want)
		}
	}
}

// TestQuietWaitsForReactions checks that quiet waits for the requests that an event causes,
// and for those that their answers cause.
func TestQuietWaitsForReactions(t *testing.T) {
	const chain = 25
	for round := range 20 {
		sessions := openSessions(t, zktest.Start(t), 2)
		c := sessions[0].client
		if _, _, _, err := c.ExistsW(t.Context(), "/go"); err != nil {
			t.Fatal(err)
		}
		var ask func(left int)
		ask = func(left int) {
			if left > 0 {
				c.Go(zk.ExistsOp("/go", false), func(zk.Result) { ask(left - 1) })
			}
		}
		defer c.Listen(zk.Listener{Event: func(zk.Event) { ask(chain) }})()
		before := sessions[0].meter.read().Requests
		if _, _, err := sessions[1].client.Create(t.Context(), "/go", nil, nil, zk.ModePersistent); err != nil {
			t.Fatal(err)
		}
		if err := quiet(t.Context(), sessions); err != nil {
			t.Fatal(err)
		}
		if got := sessions[0].meter.read().Requests - before; got != chain {
			t.Fatalf("round %d: quiet after %d of %d requests", round, got, chain)
		}
	}
}

// TestQuietEnds checks that quiet ends with its context, and with the servers.
func TestQuietEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		sessions := openSessions(t, srv, 2)
		srv.Blackhole(true)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if err := quiet(ctx, sessions); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want that the context is over", err)
		}
		srv.Blackhole(false)
		closeSessions(sessions)
		if err := quiet(t.Context(), sessions); !errors.Is(err, zk.ErrClosed) {
			t.Errorf("%v, want ErrClosed", err)
		}
	})
}

// TestListenNotifiesContenders checks that every contender of a session, and no other, gets a
// watch event, and that a lost connection is reported.
func TestListenNotifiesContenders(t *testing.T) {
	srv := zktest.Start(t)
	sessions := openSessions(t, srv, 2)
	told := make([]atomic.Int64, 4)
	disturbed := make(chan error, 8)
	for i, s := range sessions {
		s.members = []contender{&listener{told: &told[2*i]}, &listener{told: &told[2*i+1]}}
		s.listen(func(err error) { disturbed <- err })
	}
	if _, _, _, err := sessions[0].client.ExistsW(t.Context(), "/x"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := sessions[1].client.Create(t.Context(), "/x", nil, nil, zk.ModePersistent); err != nil {
		t.Fatal(err)
	}
	if err := quiet(t.Context(), sessions); err != nil {
		t.Fatal(err)
	}
	for i, want := range []int64{1, 1, 0, 0} {
		if got := told[i].Load(); got != want {
			t.Errorf("contender %d was told %d times, want %d", i, got, want)
		}
	}
	select {
	case err := <-disturbed:
		t.Fatalf("disturbed by %v before anything was", err)
	default:
	}
	srv.CutConnections()
	if err := <-disturbed; !errors.Is(err, ErrDisturbed) {
		t.Errorf("%v, want ErrDisturbed", err)
	}
}

// listener is a contender that counts its events.
type listener struct {
	contender
	told *atomic.Int64
}

func (l *listener) event(zk.Event) { l.told.Add(1) }
func (l *listener) stop()          {}
func (l *listener) close()         {}

// TestDialSessionsReturnsOpenedSessions checks that dialSessions returns the opened sessions with
// the error, which has their number.
func TestDialSessionsReturnsOpenedSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		var dials atomic.Int64
		cfg := &HerdConfig{Servers: srv.Servers(), Connect: 100 * time.Millisecond}
		cfg.Options.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			if dials.Add(1) > 5 {
				return nil, errors.New("no more of them")
			}
			return srv.DialContext(ctx, network, address)
		}
		sessions, err := dialSessions(t.Context(), cfg, 40)
		defer closeSessions(sessions)
		if err == nil || len(sessions) < 1 || len(sessions) > 5 || !strings.Contains(err.Error(), "of 40 sessions") {
			t.Errorf("%d sessions, %v", len(sessions), err)
		}
		for _, s := range sessions {
			if _, there, err := s.client.Exists(t.Context(), "/"); !there || err != nil {
				t.Errorf("a session that was returned does not work: %v, %v", there, err)
			}
		}
	})
}

// TestClosedSessionsLeaveNothing checks that the entries of waiters and holders are
// deleted.
func TestClosedSessionsLeaveNothing(t *testing.T) {
	srv := zktest.Start(t)
	watcher := srv.Dial(t)
	for _, recipe := range Recipes() {
		path := "/" + recipe.Name
		if _, _, err := watcher.Create(t.Context(), path, nil, nil, zk.ModePersistent); err != nil {
			t.Fatal(err)
		}
		sessions, err := dialSessions(t.Context(), &HerdConfig{Servers: srv.Servers(), Options: zk.Options{DialContext: srv.DialContext}}, 3)
		if err != nil {
			t.Fatal(err)
		}
		tr := newTrial(recipe, path, sessions, 5)
		if _, err := tr.begin(t.Context()); err != nil {
			t.Fatalf("%s: %v", recipe.Name, err)
		}
		before, _, err := watcher.Children(t.Context(), path)
		if err != nil || len(before) == 0 {
			t.Errorf("%s: %v, %v while contended", recipe.Name, before, err)
		}
		closeSessions(sessions)
		if left, _, err := watcher.Children(t.Context(), path); err != nil || len(left) != 0 {
			t.Errorf("%s: %v is left, %v", recipe.Name, left, err)
		}
	}
	if n := srv.Server().Stats().Sessions; n != 1 {
		t.Errorf("%d sessions are left, want the test's own", n)
	}
}
