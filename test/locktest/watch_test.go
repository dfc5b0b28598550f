package locktest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/test/harness"
)

// A watcher has the results of a Watch.
type watcher struct {
	mu     sync.Mutex
	tokens []int64 // of the yielded holders
	value  string  // of the last holder
	err    error
}

// watch watches the lock until ctx ends.
func (f *watcher) watch(ctx context.Context, c *zklock.Client, name string) {
	for s, err := range c.Watch(ctx, name) {
		f.mu.Lock()
		if f.err = err; err == nil && len(s.Holders) > 0 {
			f.tokens, f.value = append(f.tokens, s.Holders[0].Token), s.Holders[0].Value
		}
		f.mu.Unlock()
	}
}

// TestWatchWhileServersFail kills and stops each server of an ensemble in turn, while a lock
// changes its holders and values. A stopped server is behind the others when it continues.
// Watchers on all servers must see no smaller token after a larger one, and the last value.
func TestWatchWhileServersFail(t *testing.T) {
	cluster := harness.StartEnsemble(t, 3, harness.ServerConfig{TickTime: 500 * time.Millisecond})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	const name = "watch/while-servers-fail"
	opts := &zklock.Options{SessionTimeout: 8 * time.Second}
	var watchers []*watcher
	var all sync.WaitGroup
	watching, stop := context.WithCancel(ctx)
	defer all.Wait()
	defer stop()
	for i := range cluster.Servers {
		c := dial(t, ctx, cluster.ConnectStringFrom(i), &zklock.Options{SessionTimeout: opts.SessionTimeout, KeepOrder: true})
		f := &watcher{}
		watchers = append(watchers, f)
		all.Go(func() { f.watch(watching, c, name) })
	}
	a, b := dial(t, ctx, cluster.ConnectString(), opts), dial(t, ctx, cluster.ConnectString(), opts)
	value := ""
	pass := func(round string) {
		for i, c := range []*zklock.Client{a, b} {
			value = fmt.Sprint(round, " ", i)
			h, err := c.Mutex(name).WithValue("new " + value).Acquire(ctx)
			if err != nil {
				t.Fatal(err)
			}
			_ = h.SetValue(ctx, value) // the hold can be lost while a server fails
			if i == 0 || round != "last" {
				_ = h.Release(ctx)
			}
		}
	}
	for i, server := range cluster.Servers {
		server.Kill()
		pass(fmt.Sprint("killed ", i))
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		if err := cluster.WaitServing(ctx); err != nil {
			t.Fatal(err)
		}
		if err := server.Stop(); err != nil {
			t.Fatal(err)
		}
		pass(fmt.Sprint("stopped ", i))
		if err := server.Cont(); err != nil {
			t.Fatal(err)
		}
		pass(fmt.Sprint("continued ", i))
		if err := cluster.WaitServing(ctx); err != nil {
			t.Fatal(err)
		}
	}
	pass("last")
	for i, f := range watchers {
		for {
			f.mu.Lock()
			last, err, tokens := f.value, f.err, len(f.tokens)
			f.mu.Unlock()
			if last == value {
				t.Logf("watcher %d: %d states", i, tokens)
				break
			}
			if err != nil || !harness.Sleep(ctx, 10*time.Millisecond) {
				t.Fatalf("watcher %d: the last value is %q, not %q, after %d states: %v", i, last, value, tokens, err)
			}
		}
		f.mu.Lock()
		if !slices.IsSorted(f.tokens) {
			t.Errorf("watcher %d: tokens %v", i, f.tokens)
		}
		f.mu.Unlock()
	}
}
