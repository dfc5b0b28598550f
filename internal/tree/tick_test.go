package tree

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// existing returns which of the paths exist.
func (w *harness) existing(paths ...string) []string {
	return slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return w.tree.nodes.get(p) == nil })
}

// advanceWithPings advances the time, keeps the sessions alive, and calls Tick at the end.
func (w *harness) advanceWithPings(d time.Duration, peers ...*peer) {
	for ; d > 0; d -= 5 * time.Second {
		w.advance(min(d, 5*time.Second))
		for _, p := range peers {
			p.call(wire.OpPing, nil)
		}
	}
	w.tick()
}

// TestUnusedContainersAreRemovedAfterNeverUsed: a container that never had a child is removed
// Config.NeverUsed after its last change, or never if Config.NeverUsed is not set.
func TestUnusedContainersAreRemovedAfterNeverUsed(t *testing.T) {
	for _, limit := range []time.Duration{0, 150 * time.Second} {
		w := newHarness(t, Config{NeverUsed: limit.Milliseconds()})
		p := w.dial()
		for _, path := range []string{"/old", "/changed"} {
			p.mkContainer(path)
		}
		w.advanceWithPings(2*time.Minute, p)
		p.set("/changed", "x", -1)
		if got := w.existing("/old", "/changed"); len(got) != 2 {
			t.Errorf("limit %v, after 2m: %q are there", limit, got)
		}
		w.advanceWithPings(time.Minute, p)
		want := []string{"/old", "/changed"}
		if limit > 0 {
			want = want[1:]
		}
		if got := w.existing("/old", "/changed"); !slices.Equal(got, want) {
			t.Errorf("limit %v, after 3m: %q are there, want %q", limit, got, want)
		}
		w.advanceWithPings(3*time.Minute, p)
		if got := w.existing("/old", "/changed"); (len(got) == 0) != (limit > 0) {
			t.Errorf("limit %v, after 6m: %q are there", limit, got)
		}
		w.check()
	}
}

func TestEmptyContainersAreRemoved(t *testing.T) {
	w := newHarness(t, Config{})
	p := w.dial()
	p.mkContainer("/unused")
	p.mkContainer("/used")
	p.mkContainer("/busy")
	p.mk("/used/c", 0)
	p.mk("/busy/c", 0)
	p.remove("/used/c", -1)
	all := []string{"/unused", "/used", "/busy"}
	w.advanceWithPings(time.Minute-time.Nanosecond, p)
	if got := w.existing(all...); len(got) != 3 {
		t.Fatalf("before the first sweep: %q", got)
	}
	zxid := w.tree.Zxid()
	p.exists("/used", true)
	w.advanceWithPings(time.Nanosecond, p)
	if got := w.existing(all...); !slices.Equal(got, []string{"/unused", "/busy"}) {
		t.Errorf("after the first sweep: %q", got)
	}
	if w.tree.Zxid() != zxid+1 {
		t.Errorf("one removal took %d transactions", w.tree.Zxid()-zxid)
	}
	p.wantEvents("deleted /used")
	p.mk("/unused/c", wire.ModeEphemeral)
	p.remove("/busy/c", -1)
	p.call(wire.OpCloseSession, nil)
	if at, ok := w.tree.NextTick(); !ok || at != w.now.Mono+time.Minute {
		t.Errorf("next sweep in %v, %v", at-w.now.Mono, ok)
	}
	w.advance(time.Minute)
	w.tick()
	if c := w.tree.Counts(); c.Containers != 0 || c.Nodes != 4 {
		t.Errorf("after the second sweep: %+v", c)
	}
	if _, ok := w.tree.NextTick(); ok {
		t.Error("a sweep is due without containers")
	}
	w.check()
}

func TestExpiredTTLNodesAreRemoved(t *testing.T) {
	w := newHarness(t, Config{ExtendedTypes: true, ContainerInterval: time.Second})
	p := w.dial()
	mk := func(path string, ttl int64) {
		req := &wire.CreateTTLRequest{Path: path, ACL: openACL(), Flags: wire.ModePersistentTTL, TTL: ttl}
		p.want(p.call(wire.OpCreateTTL, req).Err, wire.ErrOK, path)
	}
	mk("/short", 1000)
	mk("/touched", 1000)
	mk("/parent", 1000)
	mk("/long", 3_000)
	p.mk("/parent/c", 0)
	all := []string{"/short", "/touched", "/parent", "/long"}
	w.advanceWithPings(time.Second, p)
	if got := w.existing(all...); len(got) != 4 {
		t.Errorf("exactly at the time to live: %q", got)
	}
	w.advanceWithPings(500*time.Millisecond, p)
	p.set("/touched", "", -1)
	w.advanceWithPings(500*time.Millisecond, p)
	if got := w.existing(all...); !slices.Equal(got, all[1:]) {
		t.Errorf("after two seconds: %q", got)
	}
	p.remove("/parent/c", -1)
	w.advanceWithPings(time.Second, p)
	if got := w.existing(all...); !slices.Equal(got, []string{"/long"}) {
		t.Errorf("after three seconds: %q", got)
	}
	w.advanceWithPings(time.Second, p)
	if c := w.tree.Counts(); c.TTLs != 0 {
		t.Errorf("at the end: %+v", c)
	}
	w.check()
}

// TestSweepContinuesAfterRestore checks that restored nodes keep their kinds, and that StartClocks
// starts the sweeps.
func TestSweepContinuesAfterRestore(t *testing.T) {
	w := newHarness(t, Config{ExtendedTypes: true})
	p := w.dial()
	p.mkContainer("/c")
	p.call(wire.OpCreateTTL, &wire.CreateTTLRequest{Path: "/t", ACL: openACL(), Flags: wire.ModePersistentTTL, TTL: 1})
	p.mk("/c/x", 0)
	p.remove("/c/x", -1)
	fresh := restored(t, Config{ExtendedTypes: true}, w.tree)
	if c := fresh.Counts(); c != (Counts{Sessions: 1, Nodes: 6, Containers: 1, TTLs: 1, DataBytes: w.tree.dataSize}) {
		t.Errorf("restored %+v", c)
	}
	fresh.StartClocks(Now{})
	var out Out
	fresh.Tick(Now{Mono: time.Minute, Wall: w.now.Wall + 1000}, &out)
	if c := fresh.Counts(); c.Containers+c.TTLs != 0 || len(out.Records) != 3 {
		t.Errorf("after a minute: %+v, %d records", c, len(out.Records))
	}
}

// TestSweepIsDoneInParts checks that the records of each part are limited in size, and that a sweep
// does not remove a node that changed after the sweep began.
func TestSweepIsDoneInParts(t *testing.T) {
	w := newHarness(t, Config{ContainerInterval: time.Second})
	p := w.dial()
	var paths []string
	for i := range 8 {
		path := "/" + strings.Repeat(string(rune('a'+i)), 1<<20-1<<10)
		p.mkContainer(path)
		p.mk(path+"/c", 0)
		p.remove(path+"/c", -1)
		paths = append(paths, path)
	}
	w.advance(time.Second)
	ticks := 0
	for at, ok := w.tree.NextTick(); ok && at <= w.now.Mono && ticks < 10; at, ok = w.tree.NextTick() {
		ticks++
		w.tree.Tick(w.now, &w.out)
		if size := w.recordBytes(); size > partBytes+1<<20 {
			t.Errorf("tick %d made %d bytes of records", ticks, size)
		}
		w.flush()
		if ticks == 1 {
			// One of the last two nodes gets a child, the other one is replaced.
			p.mk(paths[7]+"/c", 0)
			p.remove(paths[6], -1)
			p.mk(paths[6], 0)
		}
	}
	if ticks != 7 {
		t.Errorf("it took %d ticks, want one for each path and one for the rest", ticks)
	}
	if got := w.existing(paths...); !slices.Equal(got, paths[6:]) {
		t.Errorf("%d are left, want the 2 changed ones", len(got))
	}
	w.check()
}

// TestExpiryOfFewSessionsPrecedesThatOfMany checks that a session whose address has few sessions
// does not wait for the many sessions of another address.
func TestExpiryOfFewSessionsPrecedesThatOfMany(t *testing.T) {
	w := newHarness(t, Config{})
	w.peer.Share = 1
	for i := range 3 * partSteps / removalSteps {
		w.dial().mk(fmt.Sprint("/e", i), wire.ModeEphemeral)
	}
	w.peer.Share = 2
	w.dial().mk("/lock", wire.ModeEphemeral)
	w.advance(11 * time.Second)
	w.tick()
	if at, _ := w.tree.NextTick(); at > w.now.Mono {
		t.Fatal("all sessions ended in one part")
	}
	if got := w.existing("/lock"); len(got) > 0 {
		t.Errorf("%v is left after one part", got)
	}
	w.runParts()
	if n := len(w.tree.sessions); n > 0 {
		t.Errorf("%d sessions are left", n)
	}
	w.check()
}
