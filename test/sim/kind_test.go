package sim

import (
	"testing"
	"time"

	"github.com/zklock/zklock/internal/queue"
)

// eachKind are worlds of one lock each, of every kind and layout.
func eachKind() map[string]LockConfig {
	text := queue.Names{Layout: queue.Custom, Exclusive: "-W-", Shared: "-R-"}
	printer := queue.Names{Layout: queue.Custom, Prefix: "p", Exclusive: "_lock_", Shared: "_rlock_", Only: true}
	return map[string]LockConfig{
		"mutex":     {Path: "/locks/a", Mutexes: 1},
		"writer":    {Path: "/locks/a", Writers: 1},
		"kazoo":     {Path: "/locks/a", Mutexes: 1, Names: queue.Names{Layout: queue.Kazoo}},
		"mixed":     {Path: "/locks/a", Writers: 1, Names: queue.Names{Layout: queue.Mixed}},
		"latch":     {Path: "/locks/a", Mutexes: 1, Names: queue.Names{Layout: queue.Latch}},
		"textbook":  {Path: "/locks/a", Writers: 1, Names: text},
		"printer":   {Path: "/locks/a", Writers: 1, Names: printer},
		"semaphore": {Path: "/locks/a", Family: semaphores, Of: 1},
		"node lock": {Path: "/locks/a", Family: nodeLocks},
	}
}

// TestHandOverOfKinds checks that a release is handed on at once, and the lock
// of a process that was killed within a timeout, for every kind of lock.
func TestHandOverOfKinds(t *testing.T) {
	for name, lock := range eachKind() {
		t.Run(name, func(t *testing.T) {
			for seed := uint64(1); seed <= 10; seed++ {
				cfg := calm(seed)
				cfg.Locks = []LockConfig{lock}
				w := begin(cfg)
				h := w.holder(t)
				h.client.run(actorWork, h.client.actor(h.id).release)
				if took := w.nextGrant(t); took > 150*time.Millisecond {
					t.Fatalf("seed %d: granted %v after a release\n%s", seed, took, w.Tail())
				}
				w.holder(t).client.machine.kill(true)
				if took := w.nextGrant(t); took > cfg.Timeout+150*time.Millisecond {
					t.Fatalf("seed %d: granted %v after a kill\n%s", seed, took, w.Tail())
				}
			}
		})
	}
}

// held lives until there is a hold that is as wanted.
func (w *World) held(t *testing.T, wanted func(h *hold) bool) (found *hold) {
	t.Helper()
	w.runUntil(func() bool {
		for c := range w.clients {
			for _, h := range c.holds {
				if h.safe() && wanted(h) {
					found = h
				}
			}
		}
		return found != nil
	})
	if w.err != nil {
		t.Fatal(w.err)
	}
	return found
}

// TestLockDelay checks that an acquire with a lock delay waits before it takes the lock of
// a process that died, and that one without does not.
func TestLockDelay(t *testing.T) {
	const delay = time.Second
	kept, ignored := 0, 0
	for seed := uint64(1); seed <= 20; seed++ {
		cfg := calm(seed)
		cfg.LockDelay = delay
		w := begin(cfg)
		h := w.held(t, func(h *hold) bool { return h.want.spec.Delay > 0 && h.parts[0].trace != nil })
		h.client.machine.kill(true)
		w.runUntil(func() bool { return h.parts[0].trace.vanished != 0 })
		vanished := w.now
		next := w.held(t, func(o *hold) bool { return o != h })
		switch took := w.now - vanished; {
		case next.want.spec.Delay == 0 && took < delay:
			ignored++
		case next.want.spec.Delay > 0 && took < delay*98/100, took > delay+500*time.Millisecond:
			t.Errorf("seed %d: granted %v after the holder vanished, with a delay of %v", seed, took, next.want.spec.Delay)
		default:
			kept++
		}
	}
	if kept == 0 || ignored == 0 {
		t.Errorf("%d kept off and %d did not", kept, ignored)
	}
}

// TestDowngraded checks that readers are granted next to a writer that has become one, and
// that no writer is.
func TestDowngraded(t *testing.T) {
	for _, layout := range []queue.Layout{queue.Curator, queue.Kazoo, queue.Mixed} {
		granted := 0
		for seed := uint64(1); seed <= 10; seed++ {
			cfg := calm(seed)
			cfg.Clients, cfg.Patient = 5, true
			cfg.Locks = []LockConfig{{Path: "/locks/a", Writers: 1, Readers: 4, Names: queue.Names{Layout: layout}}}
			w := begin(cfg)
			h := w.held(t, func(h *hold) bool { return h.parts[0].writer })
			a := h.client.actor(h.id)
			a.turn++ // it holds for good
			token := h.parts[0].token
			h.client.run(actorWork, a.downgrade)
			before, until := w.Stats.Acquired, w.now+2*time.Second
			w.runUntil(func() bool { return w.now > until })
			if w.err != nil || !h.safe() || !h.parts[0].shared || h.parts[0].token != token {
				t.Fatalf("layout %d, seed %d: held %t, shared %t, %v\n%s", layout, seed, h.safe(), h.parts[0].shared, w.err, w.Tail())
			}
			// That they are readers is checked with every grant.
			granted += w.Stats.Acquired - before
		}
		if granted == 0 {
			t.Errorf("layout %d: no reader was granted next to a downgraded writer", layout)
		}
	}
}

// TestRevoked checks that a holder receives a release request, whether it watches for it
// before or after the request is made.
func TestRevoked(t *testing.T) {
	for name, lock := range eachKind() {
		for _, before := range []bool{false, true} {
			cfg := calm(7)
			cfg.Locks = []LockConfig{lock}
			w := begin(cfg)
			h := w.held(t, func(h *hold) bool { return !h.watching })
			a := h.client.actor(h.id)
			a.turn++
			want := func() {
				h.watching = true
				h.client.input(func(core *queue.Core) { core.Watch(h.client.now, h.id) })
			}
			if before {
				h.client.run(actorWork, want)
			}
			w.revoke(h.node(), h)
			asked := w.now
			w.runUntil(func() bool { return w.now > asked+200*time.Millisecond })
			if h.told != before {
				t.Errorf("%s: told %t before it wants to know", name, h.told)
			}
			if !before {
				h.client.run(actorWork, want)
			}
			w.runUntil(func() bool { return w.now > asked+400*time.Millisecond })
			if w.err != nil || !h.told || !h.safe() {
				t.Errorf("%s, wants to know before: %t: told %t, held %t, %v", name, before, h.told, h.safe(), w.err)
			}
		}
	}
}

// TestForeign checks that zklock's clients wait for an entry of another library, and that
// no reader is granted next to one that does not wait for readers.
func TestForeign(t *testing.T) {
	for name, lock := range eachKind() {
		cfg := calm(3)
		cfg.Locks = []LockConfig{lock}
		w := begin(cfg)
		w.held(t, func(h *hold) bool { return true }) // there are parents
		w.foreign(w.locks[0])
		w.runUntil(func() bool { return w.now > 15*time.Second })
		if w.err != nil || w.Stats.Acquired < 10 {
			t.Errorf("%s: %d acquired: %v", name, w.Stats.Acquired, w.err)
		}
	}
	cfg := calm(3)
	cfg.Locks = []LockConfig{{Path: "/locks/a", Readers: 1}}
	w := begin(cfg)
	w.held(t, func(h *hold) bool { return true })
	w.foreign(w.locks[0])
	w.runUntil(func() bool { return w.Stats.Foreign > 0 || w.now > 30*time.Second })
	if w.err != nil || w.Stats.Foreign == 0 {
		t.Errorf("no reader was refused: %v", w.err)
	}
}

// TestEntries checks that the world reads names as the lock core does.
func TestEntries(t *testing.T) {
	const guid = "_c_01234567-89ab-cdef-0123-456789abcdef"
	for name, l := range map[string]LockConfig{
		"curator": {Path: "/a"}, "custom": {Path: "/a", Names: queue.Names{Layout: queue.Custom, Prefix: "h", Exclusive: "-W-", Shared: "-R-"}},
		"only": {Path: "/a", Names: queue.Names{Layout: queue.Custom, Prefix: "p", Exclusive: "_lock_", Shared: "_rlock_", Only: true}},
	} {
		lock := newLock(l, 0)
		for _, child := range []string{
			guid + "-lock-0000000001", guid + "-__READ__0000000002", guid + "-__WRIT__0000000003", guid + "-latch-0000000004",
			"0123456789abcdef0123456789abcdef__lock__0000000005", "0123456789abcdef0123456789abcdef__rlock__0000000006",
			"x-W-0000000007", "x-R-0000000008", "p_lock_0000000009", "p_rlock_0000000010", "q_lock_0000000011",
			"000-config", "lock-", "x-lock-12345678901", "stray-0000000012", "deep",
		} {
			e, class := l.Names.Parse(child)
			seq, shared, ok := lock.entry("/a/" + child)
			if ok != (class == queue.Contender) || ok && (shared != (e.Kind == queue.Shared) || seq != child[len(child)-10:]) {
				t.Errorf("%s: %q is %q, shared %t, contender %t; the core has %+v, class %d", name, child, seq, shared, ok, e, class)
			}
		}
	}
}
