package kinds

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/test/history"
	"github.com/zklock/zklock/test/zkreal"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

func TestMain(m *testing.M) { os.Exit(zkreal.Main(m)) }

// TestRealStorms is TestStorms on Apache ZooKeeper, all kinds at once, with one
// restart of the server in the midst of it. On a busy machine one storm may come to
// too little; then there is another one, with other choices.
func TestRealStorms(t *testing.T) {
	t.Parallel()
	const mostStorms = 4
	var sum realSum
	enough := func() bool {
		return sum.made >= 20 && sum.made >= sum.wanted/2 && sum.Waited >= 100 && sum.Cancelled >= 50 && sum.Lost >= 5 && sum.Expired >= 5 && sum.Lowered >= 5 && sum.Reentered >= 20
	}
	for n := 0; n < mostStorms && !enough() && !t.Failed(); n++ {
		realStorm(t, n, &sum)
		t.Logf("after %d: %+v", n+1, sum)
	}
	if !enough() {
		t.Errorf("too little happened: %+v", sum)
	}
}

// realSum is what happened in real storms.
type realSum struct {
	history.Floor
	made, wanted int // guarded writes
}

// realStorm is the n-th of them, and adds what happened to the sum.
func realStorm(t *testing.T, n int, sum *realSum) {
	const timeout, lasts = 2 * time.Second, 8 * time.Second
	node := zkreal.Standalone(t, zkreal.Config{Extra: map[string]string{"maxSessionTimeout": "60000"}})
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	// Its session outlives the others', and a restart on a busy machine.
	ops, err := zk.Dial(ctx, node.Addr(), &zk.Options{SessionTimeout: 40 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ops.Close() }()
	var all sync.WaitGroup
	var mu sync.Mutex // guards histories, and the sum until all are done
	histories := map[string]*history.History{}
	for i, kind := range All() {
		proxy := zktest.NewProxy(t, "tcp", node.Addr())
		all.Go(func() { // ends with the storm
			s := &Storm{Kind: kind, Path: "/" + kind.Name + "/x", Clients: 3, Workers: 2, Lasts: lasts, Least: 25, Pace: timeout / 40, Calm: timeout / 4, Seed: uint64(100*n + i), Target: Target{
				Servers: proxy.Addr(), Options: zklock.Options{SessionTimeout: timeout},
				Relay: &proxy.Relay, Ops: ops, Timeout: timeout,
			}}
			h := s.Run(t, ctx)
			made, wanted, err := fenced(ctx, t, s)
			if err != nil {
				t.Errorf("%s: %v", s.Kind.Name, err)
			}
			mu.Lock()
			defer mu.Unlock()
			sum.made += made
			sum.wanted += wanted
			histories[kind.Name] = h
		})
	}
	wait(ctx, lasts/2)
	if err := node.Restart(ctx); err != nil {
		t.Error(err)
	}
	all.Wait()
	for _, kind := range All() {
		t.Run(kind.Name, func(t *testing.T) {
			emptied(ctx, t, ops, "/"+kind.Name)
			add(&sum.Floor, judge(t, kind, histories[kind.Name], timeout, history.Floor{Acquired: 25, Waited: 1}))
		})
	}
}

// emptied waits until nothing is left below a path but parents: sessions whose
// end was not confirmed have to expire first.
func emptied(ctx context.Context, t *testing.T, c *zk.Client, root string) {
	t.Helper()
	for {
		left, err := Left(ctx, c, root)
		if err != nil && !errors.Is(err, zk.ErrNoNode) && !errors.Is(err, zk.ErrSessionExpired) || ctx.Err() != nil {
			t.Fatalf("left behind: %q, %v", left, err)
		}
		if err == nil && len(left) == 0 {
			return
		}
		wait(ctx, 50*time.Millisecond)
	}
}
