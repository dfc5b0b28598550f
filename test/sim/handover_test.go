package sim

import (
	"testing"
	"time"
)

// calm is a small world in which only what a test does goes wrong.
func calm(seed uint64) Config {
	return Config{
		Seed: seed, Calm: true, Faults: time.Minute, Clients: 3, Actors: 1,
		Locks:   []LockConfig{{Path: "/locks/a", Mutexes: 1}},
		Timeout: 2 * time.Second, Think: 50 * time.Millisecond, Delay: time.Millisecond, Spread: time.Millisecond,
		Sync: time.Millisecond, Drift: 10_000, Sweep: time.Second, SnapshotEvery: 100,
	}
}

// holder runs the world until a client holds a lock for which other clients wait.
func (w *World) holder(t *testing.T) (h *hold) {
	t.Helper()
	w.runUntil(func() bool {
		waiting := 0
		h = nil
		for c := range w.clients {
			for _, a := range c.actors {
				if a.state == asking && a.behind {
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

// begin lets a world begin.
func begin(cfg Config) *World {
	w := New(cfg)
	w.server.boot()
	for _, m := range w.machines {
		w.after(w.upTo(time.Second), m.start)
	}
	return w
}

// nextGrant lives on until another hold is granted, and says how long it took.
func (w *World) nextGrant(t *testing.T) time.Duration {
	t.Helper()
	begun, before := w.now, w.Stats.Acquired
	w.runUntil(func() bool { return w.Stats.Acquired > before })
	if w.err != nil {
		t.Fatal(w.err)
	}
	return w.now - begun
}

// TestHandOver checks how long the next in line waits when a holder goes away:
// at once when its process ends and says so, a timeout and a little when not.
func TestHandOver(t *testing.T) {
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
				w := begin(calm(seed))
				h := w.holder(t)
				c.fault(w, h)
				if took := w.nextGrant(t); took > c.most {
					t.Fatalf("seed %d: granted after %v, want %v at the most\n%s", seed, took, c.most, w.Tail())
				}
			}
		})
	}
}

// TestSurvives checks that a hold outlives what need not end it.
func TestSurvives(t *testing.T) {
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
				w := begin(calm(seed))
				h := w.holder(t)
				h.client.actor(h.id).turn++ // it holds for good
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

// TestStopped checks that a hold whose process was stopped for longer than the
// timeout is lost when the process looks, and that its znode is gone.
func TestStopped(t *testing.T) {
	for seed := uint64(1); seed <= 20; seed++ {
		w := begin(calm(seed))
		h := w.holder(t)
		h.client.actor(h.id).turn++
		h.client.pause(3 * time.Second)
		until := w.now + 4*time.Second
		w.runUntil(func() bool { return w.now > until })
		if w.err != nil || h.open || !h.gone {
			t.Fatalf("seed %d: open %t, znode gone %t, %v\n%s", seed, h.open, h.gone, w.err, w.Tail())
		}
	}
}
