package kinds

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/test/history"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// judge checks a history by all models of its kind, and keeps it if it is bad. It
// returns what happened.
func judge(t *testing.T, kind Kind, h *history.History, timeout time.Duration, floor history.Floor) (done history.Floor) {
	t.Helper()
	bad := t.Failed()
	for _, m := range kind.Models {
		r := history.Check(h, history.Rules{Model: m, Limit: time.Minute, Linger: 5 * timeout, Kept: true, Floor: floor})
		done = r.Done
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
	return done
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

// rage lets a storm rage in a bubble, and looks whether anything is left. Besides
// the history it returns what is wrong with the guarded writes.
func rage(t *testing.T, kind Kind, seed uint64) (h *history.History, unfenced error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		ops := srv.Dial(t, func(o *zk.Options) { o.DialContext = past(srv) })
		s := &Storm{Kind: kind, Path: "/" + kind.Name + "/x", Clients: 4, Workers: 2, Lasts: 60 * bubbleTimeout, Pace: bubbleTimeout / 8, Calm: bubbleTimeout, Seed: seed,
			Target: Target{
				Servers: srv.Servers(), Options: zklock.Options{SessionTimeout: bubbleTimeout, DialContext: srv.DialContext},
				Relay: &srv.Relay, Ops: ops, Timeout: bubbleTimeout, Restart: func() {
					srv.Crash()
					srv.Restart(t)
				},
			}}
		h = s.Run(t, t.Context())
		time.Sleep(3 * bubbleTimeout) // sessions whose end was not confirmed have expired
		ctx, cancel := context.WithTimeout(t.Context(), 10*bubbleTimeout)
		defer cancel()
		var made, wanted int
		if made, wanted, unfenced = fenced(ctx, t, s); unfenced == nil && made < wanted/2 {
			unfenced = fmt.Errorf("%d of %d guarded writes only", made, wanted)
		}
		left, err := Left(t.Context(), ops, "/"+kind.Name)
		if err != nil || len(left) > 0 {
			t.Errorf("seed %d: left behind: %q, %v", seed, left, err)
		}
	})
	return h, unfenced
}

// fenced checks the order of the guarded writes of a storm that is over, and returns
// how many were made of those that were to be.
func fenced(ctx context.Context, t *testing.T, s *Storm) (made, wanted int, err error) {
	t.Helper()
	made, err = s.Fenced(ctx)
	t.Logf("seed %d: %d of %d guarded writes, %v", s.Seed, made, s.guards, err)
	if s.Kind.Unguarded {
		return 0, 0, err
	}
	return made, s.guards, err
}

var storms = flag.Int("kinds.storms", 2, "how many storms in bubbles TestStorms lets rage for each kind")

// TestStorms: whatever breaks, what the clients saw is what a lock of the kind
// may do, and nothing is left.
func TestStorms(t *testing.T) {
	t.Parallel()
	for _, kind := range All() {
		t.Run(kind.Name, func(t *testing.T) {
			floor := history.Floor{Acquired: 200, Waited: 100, Refused: 50, Cancelled: 20, Lost: 5, Expired: 5}
			if kind.Again != nil && kind.Ways != 1 {
				floor.Reentered = 30
			}
			if kind.Writer != nil {
				floor.Lowered = 10
			}
			for seed := range uint64(*storms) {
				h, err := rage(t, kind, seed)
				if err != nil {
					t.Errorf("seed %d: %v", seed, err)
				}
				judge(t, kind, h, bubbleTimeout, floor)
			}
		})
	}
}

// TestStormsBite: a lock that is none is found out.
func TestStormsBite(t *testing.T) {
	for _, kind := range impostors() {
		t.Run(kind.Name, func(t *testing.T) {
			h, err := rage(t, kind, 1)
			if err == nil && kind.fences() {
				t.Error("the guarded writes show nothing")
			}
			for _, m := range kind.Models {
				r := history.Check(h, history.Rules{Model: m, Limit: time.Second})
				if len(r.Violations) == 0 {
					t.Errorf("%s explains it", m.Name)
				}
			}
		})
	}
}
