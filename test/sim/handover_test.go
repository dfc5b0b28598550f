package sim

import (
	"testing"
	"time"
)

// noFaults returns a small world without faults.
func noFaults(seed uint64) Config {
	return Config{
		Seed: seed, NoFaults: true, Faults: time.Minute, Clients: 3, Actors: 1,
		Locks:   []LockConfig{{Path: "/locks/a", Mutexes: 1}},
		Timeout: 2 * time.Second, Think: 50 * time.Millisecond, Delay: time.Millisecond, Spread: time.Millisecond,
		Sync: time.Millisecond, Drift: 10_000, Sweep: time.Second, SnapshotEvery: 100,
	}
}

// waitForContention runs the world until a client holds a lock and another client waits for it.
func (w *World) waitForContention(t *testing.T) (h *hold) {
	t.Helper()
	w.runUntil(func() bool {
		waiting := 0
		h = nil
		for c := range w.clients {
			for _, a := range c.actors {
				if a.state == acquiring && a.blocked {
					waiting++
				}
			}
			for _, o := range c.holds {
				if o.safe() {
					h = o
				}
			}
		}
		return h != nil && waiting > 0
	})
	if w.err != nil {
		t.Fatal(w.err)
	}
	return h
}

// startWorld starts the server and the clients of a world.
func startWorld(cfg Config) *World {
	w := New(cfg)
	w.server.boot()
	for _, m := range w.machines {
		w.after(w.upTo(time.Second), m.start)
	}
	return w
}

// nextGrant runs the world until the next grant, and returns how long that took.
func (w *World) nextGrant(t *testing.T) time.Duration {
	t.Helper()
	begun, before := w.now, w.Stats.Acquired
	w.runUntil(func() bool { return w.Stats.Acquired > before })
	if w.err != nil {
		t.Fatal(w.err)
	}
	return w.now - begun
}

// TestHandoverTime checks how long the next waiter waits: no time if the holder releases or
// closes, and the session timeout if it does not.
func TestHandoverTime(t *testing.T) {
	const little = 100 * time.Millisecond
	for _, c := range []struct {
		name  string
		fault func(w *World, h *hold)
		most  time.Duration
	}{
		{"machine down", func(w *World, h *hold) { h.client.machine.kill(true) }, 2*time.Second + little},
		{"process killed", func(w *World, h *hold) { h.client.machine.kill(false) }, 2*time.Second + little},
		{"process stopped", func(w *World, h *hold) { h.client.pause(time.Hour) }, 2*time.Second + little},
		{"link down", func(w *World, h *hold) {
			h.client.machine.link.blocked = [2]time.Duration{time.Hour, time.Hour}
		}, 2*time.Second + little},
		{"closed", func(w *World, h *hold) { h.client.run(startWork, h.client.shut) }, little},
		{"released", func(w *World, h *hold) { h.client.run(actorWork, h.client.actor(h.id).release) }, little},
	} {
		t.Run(c.name, func(t *testing.T) {
			for seed := uint64(1); seed <= 20; seed++ {
				w := startWorld(noFaults(seed))
				h := w.waitForContention(t)
				c.fault(w, h)
				if took := w.nextGrant(t); took > c.most {
					t.Fatalf("seed %d: granted after %v, want %v at the most\n%s", seed, took, c.most, w.Tail())
				}
			}
		})
	}
}

// TestHoldSurvivesShortFaults checks that faults shorter than the session timeout do not end a
// hold.
func TestHoldSurvivesShortFaults(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault func(w *World, h *hold)
	}{
		{"server killed", func(w *World, h *hold) {
			w.server.crash(false)
			w.after(300*time.Millisecond, w.server.boot)
		}},
		{"power lost", func(w *World, h *hold) {
			w.server.crash(true)
			w.after(300*time.Millisecond, w.server.boot)
		}},
		{"connection cut", func(w *World, h *hold) { h.client.conn.cut(true, true) }},
		{"process stopped", func(w *World, h *hold) { h.client.pause(500 * time.Millisecond) }},
		{"wall clock set back", func(w *World, h *hold) { w.server.wall -= time.Hour }},
		{"follower cut off", func(w *World, h *hold) { w.cutOff(h.client.machine, 500*time.Millisecond) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			for seed := uint64(1); seed <= 20; seed++ {
				w := startWorld(noFaults(seed))
				h := w.waitForContention(t)
				h.client.actor(h.id).turn++ // it never releases
				c.fault(w, h)
				until := w.now + 5*time.Second
				w.runUntil(func() bool { return w.now > until })
				if w.err != nil || !h.safe() || h.client.paused {
					t.Fatalf("seed %d: held %t, %v\n%s", seed, h.safe(), w.err, w.Tail())
				}
			}
		})
	}
}

// TestHoldIsLostAfterPause checks that a hold is lost, and its znode gone, if its process was
// stopped for longer than the session timeout.
func TestHoldIsLostAfterPause(t *testing.T) {
	for seed := uint64(1); seed <= 20; seed++ {
		w := startWorld(noFaults(seed))
		h := w.waitForContention(t)
		h.client.actor(h.id).turn++
		h.client.pause(3 * time.Second)
		until := w.now + 4*time.Second
		w.runUntil(func() bool { return w.now > until })
		if w.err != nil || h.open || !h.gone {
			t.Fatalf("seed %d: open %t, znode gone %t, %v\n%s", seed, h.open, h.gone, w.err, w.Tail())
		}
	}
}
