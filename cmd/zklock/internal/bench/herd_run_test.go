package bench_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/cmd/zklock/internal/bench"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// config returns a run of these recipes on a test's server.
func config(t *testing.T, srv *zktest.Server, waiters []int, recipes ...string) bench.HerdConfig {
	t.Helper()
	return bench.HerdConfig{
		Servers: srv.Servers(), Options: zk.Options{DialContext: srv.DialContext},
		Root: "/herd", Recipes: bench.Choose(recipes), Waiters: waiters, Releases: 5, Budget: 2 * time.Minute,
	}
}

// run runs it and fails the test if an experiment failed.
func run(t *testing.T, cfg bench.HerdConfig) []bench.Row {
	t.Helper()
	rows, err := bench.RunHerd(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if r.Err != nil {
			t.Fatalf("%s, %d waiters: %v", r.Recipe.Name, r.Waiters, r.Err)
		}
	}
	return rows
}

// TestOneWakesOneOrAll checks the purpose of this package: a release of the first versions
// wakes all waiters, and a release of the others exactly one.
func TestOneWakesOneOrAll(t *testing.T) {
	srv := zktest.Start(t)
	rows := run(t, config(t, srv, []int{10, 50}))
	if want := 2 * len(bench.Recipes()); len(rows) != want {
		t.Fatalf("%d rows, want %d", len(rows), want)
	}
	for i := range rows {
		r := &rows[i]
		want := int64(1)
		if r.Recipe.Edition == bench.First {
			want = int64(r.Waiters)
		}
		if r.Fewest != want || r.Most != want {
			t.Errorf("%s, %d waiters: %d to %d sessions woken by a release, want %d", r.Recipe.Name, r.Waiters, r.Fewest, r.Most, want)
		}
		if r.Releases != 5 || len(r.Latencies) != 5 || r.Sessions != r.Waiters+1 || r.Note != "" {
			t.Errorf("%s, %d waiters: %d releases, %d latencies, %d sessions, note %q",
				r.Recipe.Name, r.Waiters, r.Releases, len(r.Latencies), r.Sessions, r.Note)
		}
		if r.Median() <= 0 || r.Slowest() < r.Median() || !slices.IsSorted(r.Latencies) {
			t.Errorf("%s, %d waiters: latencies %v", r.Recipe.Name, r.Waiters, r.Latencies)
		}
	}
}

// TestRequestsOfARelease checks the counts against the definitions of the recipes.
func TestRequestsOfARelease(t *testing.T) {
	const n = 7
	// The delete, and the requests of the woken waiters: n creates, of which n-1 fail and
	// read; n listings; one listing.
	want := map[string]float64{"one-node": 1 + n + (n - 1), "fair-parent": 1 + n, "fair-ahead": 1 + 1, "rw-parent": 1 + n, "rw-ahead": 1 + 1}
	// Create and read; create, listing, and the listings of the n-1 other waiters, which
	// get an event as the holder does; create, listing, exists.
	arrival := map[string]float64{"one-node": 2, "fair-parent": 2 + n - 1, "fair-ahead": 3, "rw-parent": 2 + n - 1, "rw-ahead": 3}
	for _, r := range run(t, config(t, zktest.Start(t), []int{n})) {
		if r.Recipe.Edition == bench.Ours {
			if got := r.PerRelease().Requests; got > 3 {
				t.Errorf("%s: %v requests a release, want few", r.Recipe.Name, got)
			}
			continue
		}
		if got := r.PerRelease().Requests; got != want[r.Recipe.Name] {
			t.Errorf("%s: %v requests a release, want %v", r.Recipe.Name, got, want[r.Recipe.Name])
		}
		if got := r.PerArrival().Requests; got != arrival[r.Recipe.Name] {
			t.Errorf("%s: %v requests an arrival, want %v", r.Recipe.Name, got, arrival[r.Recipe.Name])
		}
	}
}

// TestBytesGrow checks that the bytes grow with the square of the number of waiters if all
// of them list the queue, and in proportion to it if one does.
func TestBytesGrow(t *testing.T) {
	rows := run(t, config(t, zktest.Start(t), []int{20, 80}, "fair-parent", "fair-ahead"))
	growth := make(map[string]float64)
	for i := range rows {
		growth[rows[i].Recipe.Name] = rows[i].PerRelease().Bytes / max(growth[rows[i].Recipe.Name], 1)
	}
	if got := growth["fair-parent"]; got < 8 || got > 16 {
		t.Errorf("fair-parent: 4 times the waiters cost %.1f times the bytes, want about 12", got)
	}
	if got := growth["fair-ahead"]; got < 2 || got > 4 {
		t.Errorf("fair-ahead: 4 times the waiters cost %.1f times the bytes, want about 3", got)
	}
}

// TestHerdLeavesNothing checks that a run leaves no znodes and no sessions.
func TestHerdLeavesNothing(t *testing.T) {
	srv := zktest.Start(t)
	c := srv.Dial(t)
	before, _, err := c.Children(t.Context(), "/")
	if err != nil {
		t.Fatal(err)
	}
	run(t, config(t, srv, []int{1, 4}))
	after, _, err := c.Children(t.Context(), "/")
	if err != nil || !slices.Equal(before, after) {
		t.Errorf("the root has %v after the run, %v before it; %v", after, before, err)
	}
	if n := srv.Server().Stats().Sessions; n != 1 {
		t.Errorf("%d sessions, want the test's own", n)
	}
}

// TestCanceledHerdReturnsRows checks that a run whose context ends returns soon, with the rows so
// far, and leaves nothing.
func TestCanceledHerdReturnsRows(t *testing.T) {
	srv := zktest.Start(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cfg := config(t, srv, []int{3})
	told := 0
	cfg.Progress = func(bench.Row) {
		if told++; told == 2 {
			cancel()
		}
	}
	rows, err := bench.RunHerd(ctx, cfg)
	if !errors.Is(err, context.Canceled) || len(rows) != 2 {
		t.Errorf("%d rows and %v, want 2 and that the context was canceled", len(rows), err)
	}
	if _, there, err := srv.Dial(t).Exists(t.Context(), cfg.Root); there || err != nil {
		t.Errorf("the run's znode is there: %v, %v", there, err)
	}
}

// TestHerdKeepsForeignZnodes checks that a run does not change znodes that it did not create.
func TestHerdKeepsForeignZnodes(t *testing.T) {
	srv := zktest.Start(t)
	c := srv.Dial(t)
	cfg := config(t, srv, []int{1})
	for _, path := range []string{cfg.Root, cfg.Root + "/theirs"} {
		if _, _, err := c.Create(t.Context(), path, nil, nil, zk.ModePersistent); err != nil {
			t.Fatal(err)
		}
	}
	if rows, err := bench.RunHerd(t.Context(), cfg); !errors.Is(err, zk.ErrNodeExists) || len(rows) != 0 {
		t.Errorf("%d rows and %v, want ErrNodeExists", len(rows), err)
	}
	if _, there, err := c.Exists(t.Context(), cfg.Root+"/theirs"); !there || err != nil {
		t.Errorf("their znode is there: %v, %v", there, err)
	}
}

// TestBudget checks that a budget that is too small omits experiments with a note, and is
// not exceeded.
func TestBudget(t *testing.T) {
	srv := zktest.Start(t)
	cfg := config(t, srv, []int{2, 40}, "fair-parent", "zklock-mutex")
	cfg.Budget = time.Nanosecond
	rows, err := bench.RunHerd(t.Context(), cfg)
	if err != nil || len(rows) != 4 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for _, r := range rows {
		if !errors.Is(r.Err, bench.ErrBudget) || r.Releases != 0 {
			t.Errorf("%s, %d waiters: %d releases, %v; want ErrBudget", r.Recipe.Name, r.Waiters, r.Releases, r.Err)
		}
	}
	cfg.Budget, cfg.Releases = 400*time.Millisecond, bench.MaxReleases
	began := time.Now()
	rows, err = bench.RunHerd(t.Context(), cfg)
	if err != nil || time.Since(began) > 2*time.Minute {
		t.Fatalf("a run with a budget of 400ms took %v, %v", time.Since(began), err)
	}
	for _, r := range rows {
		if r.Err == nil && !strings.Contains(r.Note, "of 100000 releases") {
			t.Errorf("%s, %d waiters: %d releases, note %q", r.Recipe.Name, r.Waiters, r.Releases, r.Note)
		}
	}
}

// TestSharedSessions checks that watches of one session on one path count as one, and that
// the row says so.
func TestSharedSessions(t *testing.T) {
	srv := zktest.Start(t)
	cfg := config(t, srv, []int{19})
	cfg.Sessions = 5
	for i, byBound := 0, false; i < 2; i, byBound = i+1, true {
		if byBound {
			cfg.Sessions, cfg.MaxSessions = 0, 5
		}
		for _, r := range run(t, cfg) {
			want := int64(1)
			if r.Recipe.Edition == bench.First {
				want = 4
			}
			if r.Most != want || r.Sessions != 5 || !strings.Contains(r.Note, "20 contenders share 5 sessions") {
				t.Errorf("%s: %d woken, %d sessions, note %q; want %d and 5", r.Recipe.Name, r.Most, r.Sessions, r.Note, want)
			}
		}
	}
}

// TestRefusedSessions checks that contenders share the sessions that the servers permit,
// unless a number of sessions was requested: then the experiment fails.
func TestRefusedSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		cfg := config(t, srv, []int{9}, "fair-ahead")
		var open atomic.Int64
		cfg.Options.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			if open.Add(1) > 7 {
				return nil, errors.New("full")
			}
			return srv.DialContext(ctx, network, address)
		}
		cfg.Connect = 200 * time.Millisecond
		rows := run(t, cfg)
		if r := rows[0]; r.Sessions < 2 || r.Sessions > 6 || !strings.Contains(r.Note, "10 contenders share") {
			t.Errorf("%d sessions, note %q", r.Sessions, r.Note)
		}
		open.Store(0)
		cfg.Sessions = 10
		rows, err := bench.RunHerd(t.Context(), cfg)
		if err != nil || rows[0].Err == nil || rows[0].Releases != 0 {
			t.Errorf("%v, %v: want an experiment without its 10 sessions to fail", rows, err)
		}
	})
}

// TestConfig checks that invalid values are refused before any request.
func TestConfig(t *testing.T) {
	good := bench.HerdConfig{Waiters: []int{1}, Options: zk.Options{DialContext: func(context.Context, string, string) (net.Conn, error) {
		t.Error("a server was asked")
		return nil, errors.New("no")
	}}}
	for name, spoil := range map[string]func(*bench.HerdConfig){
		"no waiters":       func(c *bench.HerdConfig) { c.Waiters = nil },
		"none waits":       func(c *bench.HerdConfig) { c.Waiters = []int{1, 0} },
		"too many":         func(c *bench.HerdConfig) { c.Waiters = []int{bench.MaxWaiters + 1} },
		"no recipes":       func(c *bench.HerdConfig) { c.Recipes = []bench.Recipe{} },
		"releases":         func(c *bench.HerdConfig) { c.Releases = -1 },
		"too many of them": func(c *bench.HerdConfig) { c.Releases = bench.MaxReleases + 1 },
		"budget":           func(c *bench.HerdConfig) { c.Budget = -1 },
		"sessions":         func(c *bench.HerdConfig) { c.Sessions = -1 },
		"bound":            func(c *bench.HerdConfig) { c.MaxSessions = -1 },
	} {
		cfg := good
		spoil(&cfg)
		if _, err := bench.RunHerd(t.Context(), cfg); !errors.Is(err, bench.ErrConfig) {
			t.Errorf("%s: %v, want ErrConfig", name, err)
		}
	}
}

// TestNoServer checks that the run fails if no server can be reached.
func TestNoServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := bench.HerdConfig{Servers: "h:1", Waiters: []int{1}, Root: "/herd", Connect: 50 * time.Millisecond, Options: zk.Options{
			DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("nobody there") },
		}}
		if rows, err := bench.RunHerd(t.Context(), cfg); err == nil || rows != nil || !strings.Contains(err.Error(), "nobody there") {
			t.Errorf("%v, %v", rows, err)
		}
	})
}
