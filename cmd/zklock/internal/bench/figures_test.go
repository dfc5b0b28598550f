package bench

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// startSlowServer starts a server on which a message takes ten milliseconds each way.
func startSlowServer(t *testing.T) (*zktest.Server, FiguresConfig) {
	srv := zktest.Start(t)
	srv.Delay(10 * time.Millisecond)
	return srv, FiguresConfig{
		Dial:       func(context.Context) (*zk.Client, error) { return srv.Dial(t), nil },
		Root:       "/bench",
		Each:       5 * time.Second,
		Contenders: 3,
		Progress:   func(string) {},
	}
}

// TestFiguresTakeExpectedRoundTrips also checks that no znode is left.
func TestFiguresTakeExpectedRoundTrips(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, cfg := startSlowServer(t)
		var told []string
		cfg.Progress = func(name string) { told = append(told, name) }
		rows, err := MeasureFigures(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		const trip = 20 * time.Millisecond
		want := map[string]time.Duration{Read: trip, Sync: 2 * trip, Write: trip, Acquire: trip, Cycle: 2 * trip, Handover: trip}
		var names []string
		for _, r := range rows {
			names = append(names, r.Name)
			most := want[r.Name] + trip/4
			if r.Name == Handover {
				most += trip // if the waiter must first confirm its session
			}
			if r.P50 < want[r.Name] || r.P50 > most {
				t.Errorf("%s takes %v, want %v", r.Name, r.P50, want[r.Name])
			}
			if r.P99 < r.P50 || r.Max < r.P99 || r.Count == 0 || r.Rate() <= 0 || r.Rate() > 1/want[r.Name].Seconds()+1 {
				t.Errorf("%+v at %.1f a second", r, r.Rate())
			}
		}
		if !slices.Equal(names, []string{Read, Sync, Write, Acquire, Cycle, Handover}) || len(told) != 5 {
			t.Errorf("rows %v, told of %v", names, told)
		}
		left, _, err := srv.Dial(t).Children(t.Context(), "/")
		if err != nil || slices.Contains(left, "bench") {
			t.Errorf("left are %v, %v", left, err)
		}
	})
}

// TestCanceledFiguresCleanUp checks that a run whose context ends returns an error and leaves no
// znode.
func TestCanceledFiguresCleanUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, cfg := startSlowServer(t)
		ctx, cancel := context.WithTimeout(t.Context(), 17*time.Second) // during the measurement of locks
		defer cancel()
		rows, err := MeasureFigures(ctx, cfg)
		if !errors.Is(err, context.DeadlineExceeded) || len(rows) < 3 {
			t.Errorf("%d rows, %v", len(rows), err)
		}
		left, _, err := srv.Dial(t).Children(t.Context(), "/")
		if err != nil || slices.Contains(left, "bench") {
			t.Errorf("left are %v, %v", left, err)
		}
	})
}

// TestFiguresReportRefusedWrites checks the error of servers that refuse writes.
func TestFiguresReportRefusedWrites(t *testing.T) {
	srv, cfg := startSlowServer(t)
	z := srv.Dial(t)
	if _, err := z.SetACL(t.Context(), "/", []zk.ACL{{Perms: zk.PermRead, Scheme: "world", ID: "anyone"}}, -1); err != nil {
		t.Fatal(err)
	}
	if rows, err := MeasureFigures(t.Context(), cfg); !errors.Is(err, zk.ErrNoAuth) || len(rows) > 0 {
		t.Errorf("%v, %v", rows, err)
	}
}
