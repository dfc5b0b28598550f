package locktest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/test/harness"
	"github.com/zklock/zklock/zk"
)

// The server and the sessions of the tests of clocks.
const (
	clockTick    = 500 * time.Millisecond
	clockTimeout = 5 * time.Second
	// clockDrift is how much faster the server's clock runs.
	clockDrift = 0.05
)

// startWithFakeClock starts a server whose clocks libfaketime controls.
func startWithFakeClock(t *testing.T, env ...string) *harness.Server {
	t.Helper()
	harness.NeedZooKeeper(t)
	var libs []string
	for _, pattern := range []string{"/usr/lib/*/faketime/libfaketimeMT.so.1", "/usr/lib*/faketime/libfaketimeMT.so.1"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		libs = append(libs, found...)
	}
	if len(libs) == 0 {
		harness.SkipOrFail(t, "libfaketime is not installed")
	}
	place := harness.Placement{ClientHost: "127.0.0.1", QuorumHost: "127.0.0.1", Prefix: append([]string{"env", "LD_PRELOAD=" + libs[0]}, env...)}
	return harness.StartEnsembleAt(t, []harness.Placement{place}, harness.ServerConfig{TickTime: clockTick}).Servers[0]
}

// uptime returns the server's uptime by its own clock.
func uptime(t *testing.T, ctx context.Context, n *harness.Server) time.Duration {
	t.Helper()
	text, err := harness.FourLetter(ctx, n.Addr(), "mntr")
	if err != nil {
		t.Fatal(err)
	}
	_, value, _ := strings.Cut(text, "\nzk_uptime\t")
	value, _, _ = strings.Cut(value, "\n")
	ms, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return time.Duration(ms * float64(time.Millisecond))
}

// TestServerClockFast checks that a holder without answers reports its loss before the server
// grants the lock to another client. The server's clock is faster by the configured drift.
func TestServerClockFast(t *testing.T) {
	n := startWithFakeClock(t, fmt.Sprintf("FAKETIME=+0 x%v", 1+clockDrift))
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	began, up := time.Now(), uptime(t, ctx, n)
	link := &clientNetwork{}
	h := &holder{name: "fast clock", path: "clock/fast"}
	o := &zklock.Options{SessionTimeout: clockTimeout, ClockDrift: clockDrift, DialContext: link.dial}
	holds, waits := dial(t, ctx, n.Addr(), o), dial(t, ctx, n.Addr(), &zklock.Options{SessionTimeout: 20 * clockTick})
	h.acquireAndQueue(t, ctx, holds, waits)
	harness.Sleep(ctx, clockTimeout/2)
	link.cut()
	link.refuse(true)
	g := h.next(t, ctx)
	if g.err == nil {
		t.Errorf("two hold: the old holder has %v left", h.hold.Remaining())
	}
	late := <-h.late
	t.Logf("lost %v before the next was granted", g.at.Sub(late))
	// The measured rate becomes more precise over time, also if answers are late.
	for rate := 0.0; rate < 1+clockDrift/2; {
		if !harness.Sleep(ctx, 100*time.Millisecond) {
			t.Fatalf("the server's clock runs at %.3f of the test's clock", rate)
		}
		rate = float64(uptime(t, ctx, n)-up) / float64(time.Since(began))
	}
}

// TestServerWallClockJumps checks that jumps of the server's wall clock by an hour, forward and
// back, have no effect: the hold lasts, the waiter waits, and the next token is larger.
func TestServerWallClockJumps(t *testing.T) {
	offset := filepath.Join(t.TempDir(), "offset")
	jump := func(to string) {
		t.Helper()
		if err := os.WriteFile(offset+"~", []byte(to+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(offset+"~", offset); err != nil {
			t.Fatal(err)
		}
	}
	jump("+0")
	n := startWithFakeClock(t, "FAKETIME_TIMESTAMP_FILE="+offset, "FAKETIME_CACHE_DURATION=1", "FAKETIME_DONT_FAKE_MONOTONIC=1")
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	op, err := zk.Dial(ctx, n.Addr(), &zk.Options{SessionTimeout: 20 * clockTick})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = op.Close() }()
	o := &zklock.Options{SessionTimeout: 20 * clockTick}
	h := &holder{name: "jumps", path: "clock/jumps"}
	h.acquireAndQueue(t, ctx, dial(t, ctx, n.Addr(), o), dial(t, ctx, n.Addr(), o))
	for _, to := range []struct {
		offset string
		by     time.Duration
	}{{"+3600", time.Hour}, {"-3600", -time.Hour}, {"+0", 0}} {
		jump(to.offset)
		// The server reads the file every second.
		for off := 100 * time.Hour; (off - to.by).Abs() > time.Minute; harness.Sleep(ctx, 50*time.Millisecond) {
			path, _, err := op.Create(ctx, "/jump-", nil, nil, zk.ModePersistentSequential)
			if err != nil {
				t.Fatalf("the server's clock is off by %v, not %v, and it does not answer: %v", off, to.by, err)
			}
			_, stat, err := op.Get(ctx, path) // 3.4 answers a create without a Stat
			if err != nil {
				t.Fatal(err)
			}
			off = time.Until(time.UnixMilli(stat.Ctime))
			if err := op.Delete(ctx, path, -1); err != nil {
				t.Fatal(err)
			}
		}
		harness.Sleep(ctx, 2*clockTick) // until the server has expired sessions
		if err := h.hold.Verify(ctx); err != nil {
			t.Errorf("by %v: %v", to.by, err)
		}
	}
	if len(h.granted) > 0 {
		t.Fatal("granted while another holds")
	}
	h.handOver(t, ctx)
}
