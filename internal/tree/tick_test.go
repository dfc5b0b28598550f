package tree

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// lives returns which of the paths exist.
func (w *world) lives(paths ...string) []string {
	return slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return w.tree.nodes.get(p) == nil })
}

// keep keeps the sessions alive for some time and calls Tick at the end.
func (w *world) keep(d time.Duration, peers ...*peer) {
	for ; d > 0; d -= 5 * time.Second {
		w.advance(min(d, 5*time.Second))
		for _, p := range peers {
			p.call(wire.OpPing, nil)
		}
	}
	w.tick()
}

// TestUnusedContainersAreRemovedAfterNeverUsed: a container that never had a child
// stays for Config.NeverUsed after its last change, or forever if that is not set.
func TestUnusedContainersAreRemovedAfterNeverUsed(t *testing.T) {
	for _, limit := range []time.Duration{0, 150 * time.Second} {
		w := newWorld(t, Config{NeverUsed: limit.Milliseconds()})
		p := w.dial()
		for _, path := range []string{"/old", "/changed"} {
			p.mkContainer(path)
		}
		w.keep(2*time.Minute, p)
		p.set("/changed", "x", -1)
		if got := w.lives("/old", "/changed"); len(got) != 2 {
			t.Errorf("limit %v, after 2m: %q are there", limit, got)
		}
		w.keep(time.Minute, p)
		want := []string{"/old", "/changed"}
		if limit > 0 {
			want = want[1:]
		}
		if got := w.lives("/old", "/changed"); !slices.Equal(got, want) {
			t.Errorf("limit %v, after 3m: %q are there, want %q", limit, got, want)
		}
		w.keep(3*time.Minute, p)
		if got := w.lives("/old", "/changed"); (len(got) == 0) != (limit > 0) {
			t.Errorf("limit %v, after 6m: %q are there", limit, got)
		}
		w.check()
	}
}

func TestEmptyContainersAreRemoved(t *testing.T) {
	w := newWorld(t, Config{})
	p := w.dial()
	p.mkContainer("/unused")
	p.mkContainer("/used")
	p.mkContainer("/busy")
	p.mk("/used/c", 0)
	p.mk("/busy/c", 0)
	p.remove("/used/c", -1)
	all := []string{"/unused", "/used", "/busy"}
	w.keep(time.Minute-time.Nanosecond, p)
	if got := w.lives(all...); len(got) != 3 {
		t.Fatalf("before the first look: %q", got)
	}
	zxid := w.tree.Zxid()
	p.exists("/used", true)
	w.keep(time.Nanosecond, p)
	if got := w.lives(all...); !slices.Equal(got, []string{"/unused", "/busy"}) {
		t.Errorf("after the first look: %q", got)
	}
	if w.tree.Zxid() != zxid+1 {
		t.Errorf("one removal took %d transactions", w.tree.Zxid()-zxid)
	}
	p.wantEvents("deleted /used")
	p.mk("/unused/c", wire.ModeEphemeral)
	p.remove("/busy/c", -1)
	p.call(wire.OpCloseSession, nil)
	if at, ok := w.tree.NextTick(); !ok || at != w.now.Mono+time.Minute {
		t.Errorf("next look in %v, %v", at-w.now.Mono, ok)
	}
	w.advance(time.Minute)
	w.tick()
	if c := w.tree.Counts(); c.Containers != 0 || c.Nodes != 4 {
		t.Errorf("after the second look: %+v", c)
	}
	if _, ok := w.tree.NextTick(); ok {
		t.Error("a look is due with nothing to look at")
	}
	w.check()
}

func TestExpiredTTLNodesAreRemoved(t *testing.T) {
	w := newWorld(t, Config{ExtendedTypes: true, ContainerInterval: time.Second})
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
	w.keep(time.Second, p)
	if got := w.lives(all...); len(got) != 4 {
		t.Errorf("at its time to live, not beyond: %q", got)
	}
	w.keep(500*time.Millisecond, p)
	p.set("/touched", "", -1)
	w.keep(500*time.Millisecond, p)
	if got := w.lives(all...); !slices.Equal(got, all[1:]) {
		t.Errorf("after two seconds: %q", got)
	}
	p.remove("/parent/c", -1)
	w.keep(time.Second, p)
	if got := w.lives(all...); !slices.Equal(got, []string{"/long"}) {
		t.Errorf("after three seconds: %q", got)
	}
	w.keep(time.Second, p)
	if c := w.tree.Counts(); c.TTLs != 0 {
		t.Errorf("at the end: %+v", c)
	}
	w.check()
}

// Kinds survive a restart, and StartClocks restarts the sweep.
func TestSweepAfterRestore(t *testing.T) {
	w := newWorld(t, Config{ExtendedTypes: true})
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

// A sweep of many long paths is done in parts that the log accepts, and checks each
// node again at its turn.
func TestSweepIsDoneInParts(t *testing.T) {
	w := newWorld(t, Config{ContainerInterval: time.Second})
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
			// The last ones get a child, or are replaced by another node.
			p.mk(paths[7]+"/c", 0)
			p.remove(paths[6], -1)
			p.mk(paths[6], 0)
		}
	}
	if ticks != 7 {
		t.Errorf("it took %d ticks, want one for each path and one for the rest", ticks)
	}
	if got := w.lives(paths...); !slices.Equal(got, paths[6:]) {
		t.Errorf("%d are left, want the 2 that are in use again", len(got))
	}
	w.check()
}

// TestExpiryOfFewSessionsPrecedesThatOfMany: a session whose address has few others does not
// wait until those of another address have ended.
func TestExpiryOfFewSessionsPrecedesThatOfMany(t *testing.T) {
	w := newWorld(t, Config{})
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
	if got := w.lives("/lock"); len(got) > 0 {
		t.Errorf("%v is left after one part", got)
	}
	w.parts()
	if n := len(w.tree.sessions); n > 0 {
		t.Errorf("%d sessions are left", n)
	}
	w.check()
}
