package faults

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/test/harness"
	"github.com/zklock/zklock/zk"
)

var full = flag.Bool("faults.full", false, "TestAvailability measures at full size, and requires the goals")

// size returns the size of a measurement.
func size[T any](short, long T) T {
	if *full {
		return long
	}
	return short
}

// The servers of TestAvailability have the tick of ZooKeeper's sample configuration. Their
// clients have the default session timeout, or the shortest one that these servers grant.
const (
	usualTick    = 2 * time.Second
	usualTimeout = 20 * time.Second
	leastTimeout = 2 * usualTick
)

// TestAvailability measures how long holds last, and the load of clients on the servers.
// Each row prints its figures. The default run has few clients, and limits that a busy
// machine also meets. See docs/how-zklock-is-tested.md.
func TestAvailability(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes")
	}
	for _, kind := range []struct {
		name  string
		start func(testing.TB) []string
	}{
		{"embedded", func(tb testing.TB) []string { return []string{startEmbeddedWith(tb, usualTick).Addr()} }},
		{"ensemble", func(tb testing.TB) []string { return strings.Split(startUsualEnsemble(tb).ConnectString(), ",") }},
	} {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			servers := kind.start(t)
			t.Run("rows", func(t *testing.T) { // waits for all parallel rows
				for _, row := range silenceRows {
					t.Run(fmt.Sprintf("silence with sessions of %v", row.timeout), func(t *testing.T) {
						t.Parallel()
						row.measure(t, servers)
					})
				}
				t.Run("command in silence", func(t *testing.T) {
					t.Parallel()
					measureCommandInSilence(t, servers)
				})
				t.Run("acquire after idle time", func(t *testing.T) {
					t.Parallel()
					measureAcquireAfterIdleTime(t, servers)
				})
			})
			// measureCost counts all transactions of the servers, so it runs alone.
			t.Run("cost", func(t *testing.T) { measureCost(t, servers) })
		})
	}
	t.Run("restarts", func(t *testing.T) {
		t.Parallel()
		ensemble := startUsualEnsemble(t)
		t.Run("leader killed", func(t *testing.T) { measureLeader(t, ensemble, killLeader) })
		t.Run("leader paused", func(t *testing.T) { measureLeader(t, ensemble, pauseLeader) })
		t.Run("rolling restart", func(t *testing.T) { measureRollingRestart(t, ensemble) })
	})
}

// startEmbeddedWith starts an embedded server with a tick.
func startEmbeddedWith(tb testing.TB, ticks time.Duration) *harness.Embedded {
	tb.Helper()
	return startEmbeddedIn(tb, tb.TempDir(), ticks)
}

// startEmbeddedIn starts an embedded server with its data and its log in a folder.
func startEmbeddedIn(tb testing.TB, dir string, ticks time.Duration) *harness.Embedded {
	tb.Helper()
	s, err := harness.StartEmbedded(harness.EmbeddedConfig{Dir: filepath.Join(dir, "data"), Tick: ticks}, filepath.Join(dir, "log"))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Kill)
	return s
}

// startUsualEnsemble starts three servers of Apache ZooKeeper.
func startUsualEnsemble(tb testing.TB) *harness.Ensemble {
	tb.Helper()
	return harness.StartEnsemble(tb, ensembleSize, harness.ServerConfig{TickTime: usualTick, SyncLimit: 5})
}

// dialMany dials n clients, whose heartbeats are at different phases, and closes them
// when the test ends.
func dialMany(t *testing.T, n int, servers func(i int) string, opts zklock.Options) []*zklock.Client {
	t.Helper()
	clients := make([]*zklock.Client, n)
	eachOf(t, n, func(i int) error {
		harness.Sleep(t.Context(), rand.N(opts.SessionTimeout/8))
		c, err := zklock.Dial(t.Context(), servers(i), &opts)
		clients[i] = c
		return err
	})
	t.Cleanup(func() {
		eachOf(t, n, func(i int) error {
			_ = clients[i].Close() // some servers are silent or have ended the session
			return nil
		})
	})
	return clients
}

// holdMany acquires a different lock for each client.
func holdMany(t *testing.T, clients []*zklock.Client, name string) []*zklock.Hold {
	t.Helper()
	holds := make([]*zklock.Hold, len(clients))
	eachOf(t, len(clients), func(i int) (err error) {
		holds[i], err = clients[i].Mutex(fmt.Sprintf("%s-%d", name, i)).Acquire(t.Context())
		return err
	})
	return holds
}

// eachOf calls do for 0 to n-1 on a few goroutines, and ends the test if a call fails.
func eachOf(t *testing.T, n int, do func(i int) error) {
	t.Helper()
	var wg sync.WaitGroup
	next := make(chan int)
	for range min(n, 100) {
		wg.Go(func() {
			for i := range next {
				if err := do(i); err != nil {
					t.Errorf("%d: %v", i, err)
				}
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// dialObserver dials a client without locks.
func dialObserver(t *testing.T, servers string) *zk.Client {
	t.Helper()
	c, err := zk.Dial(t.Context(), servers, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // the servers end next
	return c
}

// settle waits until a client that was dialed at began knows the servers' tick and has used
// it. It returns at a random phase of the heartbeats.
func settle(ctx context.Context, began time.Time, timeout time.Duration) bool {
	life := timeout + timeout/2 + time.Duration(rand.Int64N(int64(timeout/4)))
	return harness.Sleep(ctx, life-time.Since(began))
}

// smallestAndMedian sorts the values.
func smallestAndMedian(values []time.Duration) (smallest, median time.Duration) {
	slices.Sort(values)
	return values[0], values[len(values)/2]
}

// percent returns a part as a percentage of the whole.
func percent(part, whole time.Duration) float64 { return 100 * part.Seconds() / whole.Seconds() }
