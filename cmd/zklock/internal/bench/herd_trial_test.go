package bench

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// faultyContender is a contender that breaks the rules.
type faultyContender struct {
	contender
	onWait  func()
	onLeave func()
}

func (o faultyContender) wait() {
	if o.onWait != nil {
		o.onWait()
	}
	o.contender.wait()
}

func (o faultyContender) leave(ctx context.Context) error {
	if o.onLeave != nil {
		o.onLeave()
	}
	return o.contender.leave(ctx)
}

// runFaulty runs one recipe with four waiters.
func runFaulty(t *testing.T, srv *zktest.Server, join func(*zk.Client, string) contender) Row {
	t.Helper()
	rows, err := RunHerd(t.Context(), HerdConfig{
		Servers: srv.Servers(), Options: zk.Options{DialContext: srv.DialContext}, Root: "/herd",
		Recipes: []Recipe{{"faulty", "a recipe that is broken", Mutex, First, join}}, Waiters: []int{4}, Releases: 3, Budget: time.Minute,
	})
	if err != nil || len(rows) != 1 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	return rows[0]
}

// greedy grants itself the lock at once.
type greedy struct{ node }

func (g *greedy) wait()                       { g.granted(nil) }
func (g *greedy) leave(context.Context) error { return nil }

// TestBrokenRecipeHasNoFigures checks a lock that two clients hold at the same time.
func TestBrokenRecipeHasNoFigures(t *testing.T) {
	row := runFaulty(t, zktest.Start(t), func(c *zk.Client, path string) contender { return &greedy{node{client: c}} })
	if !errors.Is(row.Err, ErrExclusion) || row.Releases != 0 {
		t.Errorf("%d releases, %v; want ErrExclusion", row.Releases, row.Err)
	}
}

// TestLostConnectionInvalidatesFigures checks that a lost connection makes the figures invalid,
// even though every client reconnects.
func TestLostConnectionInvalidatesFigures(t *testing.T) {
	srv := zktest.Start(t)
	row := runFaulty(t, srv, func(c *zk.Client, path string) contender {
		return faultyContender{contender: joinNode(c, path), onLeave: srv.CutConnections}
	})
	if !errors.Is(row.Err, ErrDisturbed) && !errors.Is(row.Err, zk.ErrConnectionLost) || row.Releases != 0 {
		t.Errorf("%d releases, %v; want that a connection was lost", row.Releases, row.Err)
	}
}

// TestTrialWithoutServersEndsWithBudget checks that a run that loses its servers ends with its
// budget.
func TestTrialWithoutServersEndsWithBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		_, err := RunHerd(t.Context(), HerdConfig{
			Servers: srv.Servers(), Options: zk.Options{DialContext: srv.DialContext, SessionTimeout: time.Second}, Root: "/herd",
			Recipes: []Recipe{{"faulty", "a recipe that is broken", Mutex, First, func(c *zk.Client, path string) contender {
				return faultyContender{contender: joinNode(c, path), onLeave: srv.Stop}
			}}}, Waiters: []int{2}, Budget: time.Second,
		})
		if err == nil {
			t.Error("a run whose server has gone has no error")
		}
	})
}

// TestFirstErrorEndsTrial also checks that reporting more errors does not block.
func TestFirstErrorEndsTrial(t *testing.T) {
	tr := &trial{grants: make(chan grant, 1), troubles: make(chan error, 1)}
	first := errors.New("first")
	tr.trouble(first)
	tr.trouble(errors.New("second"))
	if _, err := tr.granted(t.Context()); err != first {
		t.Errorf("%v, want the first", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := tr.granted(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that the context is over", err)
	}
}

// TestNeighborsHaveDifferentSessions checks that neighbors in the queue have different sessions,
// if there are at least two.
func TestNeighborsHaveDifferentSessions(t *testing.T) {
	srv := zktest.Start(t)
	sessions := []*session{{client: srv.Dial(t), meter: &meter{}}, {client: srv.Dial(t), meter: &meter{}}, {client: srv.Dial(t), meter: &meter{}}}
	tr := newTrial(Recipes()[0], "/x", sessions, 7)
	for _, s := range sessions {
		s.unhear()
	}
	for i := 1; i < len(tr.entrants); i++ {
		if tr.entrants[i].home == tr.entrants[i-1].home {
			t.Errorf("%d and %d share a session", i-1, i)
		}
	}
	if n := len(sessions[0].members); n != 3 {
		t.Errorf("the first session has %d members, want 3 of 7", n)
	}
}

func TestExclusion(t *testing.T) {
	tests := []struct {
		name  string
		steps string // r and w acquire, R and W release
		ok    bool
	}{
		{"one writer after the other", "wWwW", true},
		{"two writers", "ww", false},
		{"readers together", "rrRrRR", true},
		{"a writer next to a reader", "rw", false},
		{"a reader next to a writer", "wr", false},
		{"taking turns", "rrRRwWr", true},
		{"broken stays broken", "wwWWw", false},
	}
	for _, tt := range tests {
		var x exclusion
		ok := true
		for _, s := range tt.steps {
			switch s {
			case 'r', 'w':
				ok = x.grant(s == 'w')
			default:
				x.leave(s == 'W')
			}
		}
		if ok != tt.ok || x.broken == tt.ok {
			t.Errorf("%s: %v, broken %v; want %v", tt.name, ok, x.broken, tt.ok)
		}
	}
}
