package zkprom

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// page renders the metrics. A pedantic registry checks that they match their descriptions.
func page(t *testing.T, m *Locks) string {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	if err := r.Register(m); err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	promhttp.HandlerFor(r, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("status %d\n%s", w.Code, w.Body)
	}
	return w.Body.String()
}

// wants checks that the page has these lines.
func wants(t *testing.T, page string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !regexp.MustCompile(`(?m)^` + line + `$`).MatchString(page) {
			t.Errorf("the page has no line %s", line)
		}
	}
	if t.Failed() {
		t.Log(page)
	}
}

// dial connects a client with metrics.
func dial(t *testing.T, srv *zktest.Server, m *Locks, o zklock.Options) *zklock.Client {
	t.Helper()
	o.SessionTimeout, o.DialContext = 8*time.Second, srv.DialContext
	m.Hook(&o)
	c, err := zklock.Dial(t.Context(), srv.Servers(), &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// TestLocks checks the metrics of each outcome of an acquire and a hold, in virtual time, so that
// durations are exact.
func TestLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, m := zktest.Start(t), NewLocks(nil)
		called := 0
		c := dial(t, srv, m, zklock.Options{OnAcquire: func(zklock.Event) { called++ }})
		m.Watch(c)
		first, err := c.Mutex("a").Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Mutex("a").TryAcquire(t.Context()); !errors.Is(err, zklock.ErrLocked) {
			t.Error(err)
		}
		second := make(chan *zklock.Hold)
		go func() { // ends with the grant
			h, err := c.Mutex("a").Acquire(t.Context())
			if err != nil {
				t.Error(err)
			}
			second <- h
		}()
		synctest.Wait()
		time.Sleep(10 * time.Second)
		wants(t, page(t, m),
			`zklock_lock_held{lock="/zklock/a",mode="exclusive"} 1`, `zklock_lock_oldest_hold_seconds{lock="/zklock/a",mode="exclusive"} 10(\.\d+)?`,
			`zklock_lock_waiting{lock="/zklock/a",mode="exclusive"} 1`, `zklock_lock_oldest_wait_seconds{lock="/zklock/a",mode="exclusive"} 10(\.\d+)?`,
			`zklock_lock_acquires_total{lock="/zklock/a",mode="exclusive",outcome="acquired"} 1`,
			`zklock_lock_acquires_total{lock="/zklock/a",mode="exclusive",outcome="locked"} 1`,
			`zklock_lock_losses_total{lock="/zklock/a",mode="exclusive",reason="expired"} 0`)
		for err, ctx := range map[error]func() (context.Context, context.CancelFunc){
			context.DeadlineExceeded: func() (context.Context, context.CancelFunc) { return context.WithTimeout(t.Context(), time.Second) },
			context.Canceled: func() (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(time.Second, cancel)
				return ctx, cancel
			},
		} {
			ctx, cancel := ctx()
			if _, got := c.Mutex("a").Acquire(ctx); !errors.Is(got, err) {
				t.Errorf("%v, want %v", got, err)
			}
			cancel()
		}
		if err := first.Release(t.Context()); err != nil {
			t.Error(err)
		}
		h := <-second
		if err := srv.ExpireSession(h.Session()); err != nil {
			t.Fatal(err)
		}
		<-h.Done()
		synctest.Wait()
		text := page(t, m)
		wants(t, text,
			`zklock_lock_held{lock="/zklock/a",mode="exclusive"} 0`, `zklock_lock_waiting{lock="/zklock/a",mode="exclusive"} 0`,
			`zklock_lock_acquires_total{lock="/zklock/a",mode="exclusive",outcome="acquired"} 2`,
			`zklock_lock_acquires_total{lock="/zklock/a",mode="exclusive",outcome="timeout"} 1`,
			`zklock_lock_acquires_total{lock="/zklock/a",mode="exclusive",outcome="cancelled"} 1`,
			`zklock_lock_acquires_total{lock="/zklock/a",mode="exclusive",outcome="error"} 0`,
			`zklock_lock_releases_total{lock="/zklock/a",mode="exclusive",result="confirmed"} 1`,
			`zklock_lock_losses_total{lock="/zklock/a",mode="exclusive",reason="expired"} 1`,
			`zklock_lock_wait_seconds_count{lock="/zklock/a",mode="exclusive"} 2`,
			`zklock_lock_wait_seconds_bucket{lock="/zklock/a",mode="exclusive",le="15"} 2`, `zklock_lock_wait_seconds_bucket{lock="/zklock/a",mode="exclusive",le="5"} 1`,
			`zklock_lock_hold_seconds_count{lock="/zklock/a",mode="exclusive"} 2`, `zklock_lock_hold_seconds_bucket{lock="/zklock/a",mode="exclusive",le="5"} 1`,
			// No entry was ahead of the first, one of the second, and two of the canceled acquires.
			`zklock_lock_queue_length_bucket{lock="/zklock/a",mode="exclusive",le="0"} 1`, `zklock_lock_queue_length_bucket{lock="/zklock/a",mode="exclusive",le="1"} 2`,
			`zklock_lock_queue_length_bucket{lock="/zklock/a",mode="exclusive",le="2"} 4`, `zklock_lock_queue_length_count{lock="/zklock/a",mode="exclusive"} 4`)
		if called != 2 {
			t.Errorf("the program's own hook was called %d times for 2 grants", called)
		}
	})
}

// TestSessionMetrics checks the metrics while the server is silent, and in the next session.
func TestSessionMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, m := zktest.Start(t), NewLocks(nil)
		if text := page(t, m); strings.Contains(text, "zklock_client_") {
			t.Errorf("metrics of no session:\n%s", text)
		}
		c := dial(t, srv, m, zklock.Options{})
		m.Watch(c)
		h, err := c.RWMutex("a").Reader().Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(20*time.Second + time.Second/2) // between two heartbeats
		wants(t, page(t, m), `zklock_client_session_state{state="connected"} 1`, `zklock_client_session_state{state="disconnected"} 0`,
			`zklock_client_session_state{state="authentication_failed"} 0`, `zklock_client_session_state{state="connected_read_only"} 0`,
			`zklock_client_session_timeout_seconds 8`, `zklock_client_sessions_total 1`, `zklock_client_heartbeat_age_seconds 0(\.\d+)?`, `zklock_client_safe_seconds [2-7](\.\d+)?`)
		srv.Pause()
		<-h.Done()
		synctest.Wait()
		wants(t, page(t, m), `zklock_client_heartbeat_age_seconds [3-9](\.\d+)?`, `zklock_client_safe_seconds 0`,
			`zklock_lock_jeopardies_total{lock="/zklock/a",mode="shared"} 1`, `zklock_lock_losses_total{lock="/zklock/a",mode="shared",reason="no_quorum"} 1`)
		srv.Resume()
		if err := srv.ExpireSession(h.Session()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		wants(t, page(t, m), `zklock_client_session_state{state="connected"} 1`, `zklock_client_sessions_total 2`)
		m.Watch(nil)
		if text := page(t, m); strings.Contains(text, "zklock_client_") {
			t.Errorf("metrics of a session that is watched no longer:\n%s", text)
		}
	})
}

// TestLabelsAreLimited checks that the number and the length of labels are limited, and that labels
// are valid UTF-8.
func TestLabelsAreLimited(t *testing.T) {
	m := NewLocks(&LocksOptions{MaxLocks: 3})
	for _, path := range []string{"/a", "/b", "/a", "/b\xff" + strings.Repeat("x", 500)} {
		if got := m.label(path); got == "other" {
			t.Errorf("%q is labeled other", path)
		}
	}
	if got := m.label("/c"); got != "other" {
		t.Errorf("the fourth lock is called %q", got)
	}
	if got := m.label("/a"); got != "/a" {
		t.Errorf("the first lock is called %q afterwards", got)
	}
	if got := NewLocks(nil).label("/b\xff" + strings.Repeat("x", 500)); got != "/b\uFFFD"+strings.Repeat("x", 197) {
		t.Errorf("a long invalid path became %q", got)
	}
	own := NewLocks(&LocksOptions{Label: func(path string) string { return path[:2] }})
	if got := own.label("/customer/12"); got != "/c" {
		t.Errorf("the program's own label became %q", got)
	}
}

// TestClientsWithSameAttemptNumbersAreSeparate: each client numbers its attempts from 1.
func TestClientsWithSameAttemptNumbersAreSeparate(t *testing.T) {
	m := NewLocks(nil)
	var one, two zklock.Options
	m.Hook(&one)
	m.Hook(&two)
	e := zklock.Event{Path: "/a", Mode: zklock.Exclusive, Attempt: 1, Time: time.Now()}
	one.OnAcquire(e)
	two.OnAcquire(e)
	one.OnRelease(e)
	wants(t, page(t, m), `zklock_lock_held{lock="/a",mode="exclusive"} 1`)
}

// TestEachReasonHasCounter checks the reason and the outcome of each error, and their counters.
func TestEachReasonHasCounter(t *testing.T) {
	wrap := func(err error) error {
		return &zklock.Error{Op: "hold", Err: fmt.Errorf("%w: %w", zklock.ErrLost, err)}
	}
	for err, want := range map[error]string{
		wrap(zk.ErrSessionExpired): "expired", wrap(zklock.ErrDeleted): "deleted", wrap(zklock.ErrNoQuorum): "no_quorum",
		wrap(zklock.ErrClosed): "closed", wrap(zk.ErrAuthFailed): "auth_failed", wrap(errors.New("rain")): "other",
	} {
		if got := reason(err); got != want {
			t.Errorf("%v counts as %s, want %s", err, got, want)
		}
	}
	for err, want := range map[error]string{
		zklock.ErrClosed: "closed", zklock.ErrForeignMutex: "error", zklock.ErrLocked: "locked",
		fmt.Errorf("%w: %w", context.Canceled, errors.New("x")): "cancelled", context.DeadlineExceeded: "timeout",
	} {
		if got := outcome(err); got != want {
			t.Errorf("%v counts as %s, want %s", err, got, want)
		}
	}
	m := NewLocks(nil)
	o := zklock.Options{}
	m.Hook(&o)
	o.OnWait(zklock.Event{Path: "/a", Mode: zklock.Shared})
	text := page(t, m)
	for _, word := range append(reasons(), outcomes()...) {
		if !strings.Contains(text, `="`+word+`"} 0`) {
			t.Errorf("no counter begins at 0 for %s", word)
		}
	}
}

// TestWrongBucketsPanicAtOnce checks that wrong buckets do not end the program later, in a hook.
func TestWrongBucketsPanicAtOnce(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	NewLocks(&LocksOptions{Buckets: []float64{3, 1, 2}})
}
