package kinds

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/test/history"
	"github.com/zklock/zklock/zktest"
)

// judge checks a history by all models of its kind, and keeps it if it is bad.
func judge(t *testing.T, kind Kind, h *history.History, timeout time.Duration, floor history.Floor) {
	t.Helper()
	bad := t.Failed()
	for _, m := range kind.Models {
		r := history.Check(h, history.Rules{Model: m, Limit: time.Minute, Linger: 5 * timeout, Floor: floor})
		t.Logf("seed %d, %s: %s", h.Seed, m.Name, r)
		for i, v := range r.Violations {
			if i < 10 {
				t.Errorf("seed %d, %s: %s", h.Seed, m.Name, v)
			}
		}
	}
	if t.Failed() && !bad {
		keep(t, h)
	}
}

// keep writes a history to where the test's artifacts are.
func keep(t *testing.T, h *history.History) {
	t.Helper()
	f, err := os.Create(filepath.Join(t.ArtifactDir(), fmt.Sprintf("history-%d.jsonl", h.Seed)))
	if err != nil {
		t.Error(err)
		return
	}
	if err := h.Write(f); err != nil {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	t.Logf("the history is in %s", f.Name())
}

// bubbleTimeout is that of the sessions in a bubble.
const bubbleTimeout = 4 * time.Second

// rage lets a storm rage in a bubble, and looks whether anything is left.
func rage(t *testing.T, kind Kind, seed uint64) (h *history.History) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		s := &Storm{Kind: kind, Path: "/" + kind.Name + "/x", Clients: 4, Workers: 2, Lasts: 60 * bubbleTimeout, Pace: bubbleTimeout / 8, Seed: seed,
			Target: Target{
				Relay: &srv.Relay, Timeout: bubbleTimeout, Restart: func() {
					srv.Crash()
					srv.Restart(t)
				},
				Dial: func(ctx context.Context) (*zklock.Client, error) {
					return zklock.Dial(ctx, srv.Servers(), &zklock.Options{SessionTimeout: bubbleTimeout, DialContext: srv.DialContext})
				},
			}}
		h = s.Run(t, t.Context())
		time.Sleep(3 * bubbleTimeout) // sessions whose end was not confirmed have expired
		left, err := Left(t.Context(), srv.Dial(t), "/"+kind.Name)
		if err != nil || len(left) > 0 {
			t.Errorf("seed %d: left behind: %q, %v", seed, left, err)
		}
	})
	return h
}

// TestStorms: whatever breaks, what the clients saw is what a lock of the kind
// may do, and nothing is left.
func TestStorms(t *testing.T) {
	for _, kind := range All() {
		t.Run(kind.Name, func(t *testing.T) {
			for seed := range uint64(2) {
				judge(t, kind, rage(t, kind, seed), bubbleTimeout, history.Floor{Acquired: 100, Waited: 20, Refused: 5, Cancelled: 5, Lost: 10, Expired: 5})
			}
		})
	}
}

// TestStormsBite: a lock that is none is found out.
func TestStormsBite(t *testing.T) {
	for _, kind := range impostors() {
		t.Run(kind.Name, func(t *testing.T) {
			h := rage(t, kind, 1)
			for _, m := range kind.Models {
				r := history.Check(h, history.Rules{Model: m, Limit: time.Second})
				if len(r.Violations) == 0 {
					t.Errorf("%s explains it", m.Name)
				}
			}
		})
	}
}
