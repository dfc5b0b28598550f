package faults

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/test/harness"
	"github.com/zklock/zklock/zktest"
)

// TestSizing measures the load of clients on one server: transactions, syncs, log, and
// memory. docs/guides/production.md has the figures of a full run.
func TestSizing(t *testing.T) {
	n, timeout := size(50, 1000), size(2*leastTimeout, usualTimeout)
	for _, kind := range []struct {
		name  string
		start func(t *testing.T) (s sizedServer, data string)
	}{
		{"embedded", func(t *testing.T) (sizedServer, string) {
			dir := t.TempDir()
			return startEmbeddedIn(t, dir, usualTick), filepath.Join(dir, "data")
		}},
		{"zookeeper", func(t *testing.T) (sizedServer, string) {
			s := harness.StartServer(t, harness.ServerConfig{TickTime: usualTick, ForceSync: true})
			return s, s.DataDir()
		}},
	} {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			s, data := kind.start(t)
			trials(t, func(t *testing.T) bool { return trySize(t, s, data, n, timeout) })
			if !*full {
				return
			}
			// A server of ZooKeeper writes a snapshot when it starts.
			if err := s.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
			t.Logf("the newest snapshot has %d bytes", snapshotBytes(t, data))
		})
	}
}

// trySize measures n clients of a server, whose data is in a folder. It reports whether all
// holds lasted.
func trySize(t *testing.T, s sizedServer, data string, n int, timeout time.Duration) bool {
	t.Helper()
	empty := memory(t, s.Pid())
	var m meter
	clients := dialMany(t, n, func(int) string { return s.Addr() },
		zklock.Options{SessionTimeout: timeout, ServerTick: usualTick, DialContext: m.dial, PersistentParents: true})
	harness.Sleep(t.Context(), timeout/2)
	idle := m.over(t, s.Addr(), timeout)
	holds := holdMany(t, clients, "sizing")
	harness.Sleep(t.Context(), timeout/2)
	before := logBytes(t, data)
	busy := m.over(t, s.Addr(), 2*timeout)
	grown := logBytes(t, data) - before
	rate := float64(grown) / (2 * timeout).Seconds()
	t.Logf("%d clients, sessions of %v: idle %v; with one hold each %v; %.0f bytes of log a transaction, %.2f GB a day; memory from %d to %d MB",
		n, timeout, idle, busy, rate/busy.transactions, rate*86400/1e9, empty>>20, memory(t, s.Pid())>>20)
	for _, h := range holds {
		if h.Err() != nil {
			t.Logf("a hold ended: %v", h.Err())
			return false
		}
	}
	if each := rate / busy.transactions; each < 20 || each > 1000 {
		t.Errorf("a heartbeat takes %.0f bytes of log", each)
	}
	if limit := float64(n) * 8 / timeout.Seconds() * 1.2; busy.transactions > limit || busy.syncs > 2*limit {
		t.Errorf("%v, want %.1f transactions and twice as many syncs", busy, limit)
	}
	return true
}

// A sizedServer is a server with a process ID.
type sizedServer interface {
	server
	Pid() int
}

// memory returns the resident memory of a process, in bytes.
func memory(t *testing.T, pid int) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(status), "VmRSS:")
	kb, err := strconv.ParseInt(strings.TrimSpace(strings.SplitN(text, "kB", 2)[0]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kb << 10
}

// logBytes returns the size of the transaction logs without the zeros that servers
// preallocate.
func logBytes(t *testing.T, dir string) (sum int64) {
	t.Helper()
	eachFile(t, dir, func(path string) error {
		if strings.HasPrefix(filepath.Base(path), "snapshot") {
			return nil
		}
		data, err := os.ReadFile(path)
		sum += int64(len(bytes.TrimRight(data, "\x00")))
		return err
	})
	return sum
}

// snapshotBytes returns the size of the newest snapshot, or 0.
func snapshotBytes(t *testing.T, dir string) (size int64) {
	t.Helper()
	var newest time.Time
	eachFile(t, dir, func(path string) error {
		info, err := os.Stat(path)
		if err == nil && strings.HasPrefix(filepath.Base(path), "snapshot") && info.ModTime().After(newest) {
			newest, size = info.ModTime(), info.Size()
		}
		return err
	})
	return size
}

// eachFile calls do for each file below a folder.
func eachFile(t *testing.T, dir string, do func(path string) error) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return do(path)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestWideAreaRoundTrips checks that acquires and handovers of clients far from the server
// take one round trip.
func TestWideAreaRoundTrips(t *testing.T) {
	s := harness.StartServer(t, harness.ServerConfig{TickTime: usualTick})
	// The default run has longer round trips, so that delays of a busy machine matter less.
	for _, trip := range size([]time.Duration{400 * time.Millisecond, time.Second}, []time.Duration{80 * time.Millisecond, 250 * time.Millisecond}) {
		t.Run(trip.String(), func(t *testing.T) {
			t.Parallel()
			n := size(5, 100)
			var clients [2]*zklock.Client
			for i := range clients {
				proxy := zktest.NewProxy(t, "tcp", s.Addr())
				proxy.Delay(trip / 2)
				clients[i] = dialMany(t, 1, func(int) string { return proxy.Servers() },
					zklock.Options{SessionTimeout: usualTimeout, ServerTick: usualTick, PersistentParents: true})[0]
			}
			holder, waiter := clients[0].Mutex("far/"+trip.String()), clients[1].Mutex("far/"+trip.String())
			acquires, handovers := make([]time.Duration, n), make([]time.Duration, n)
			for i := range n {
				began := time.Now()
				hold, err := holder.Acquire(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				acquires[i] = time.Since(began)
				next := make(chan error, 1)
				var granted time.Time
				go func() { // ends with the grant
					h, err := waiter.Acquire(t.Context())
					if granted = time.Now(); err == nil {
						err = h.Release(t.Context())
					}
					next <- err
				}()
				for entries := 0; entries < 2; { // until the other client waits
					list, err := holder.Inspect(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					entries = len(list)
				}
				harness.Sleep(t.Context(), 2*trip) // until it watches the holder's entry
				released := time.Now()
				if err := hold.Release(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := <-next; err != nil {
					t.Fatal(err)
				}
				handovers[i] = granted.Sub(released)
			}
			_, acquire := smallestAndMedian(acquires)
			_, handover := smallestAndMedian(handovers)
			ms := func(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }
			t.Logf("round trip %v, %d times: acquire median %v, longest %v; handover median %v, longest %v",
				trip, n, ms(acquire), ms(acquires[n-1]), ms(handover), ms(handovers[n-1]))
			for what, took := range map[string]time.Duration{"acquire": acquire, "handover": handover} {
				if took < trip || took > trip*3/2 {
					t.Errorf("%s: %v, want one round trip of %v", what, took, trip)
				}
			}
		})
	}
}
