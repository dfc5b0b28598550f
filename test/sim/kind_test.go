package sim

import (
	"testing"
	"time"

	"github.com/zklock/zklock/internal/queue"
)

// eachKind returns a lock of every kind and layout.
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

// TestHandoverTimeOfEachKind checks for every kind of lock that a waiter is granted at once after a
// release, and within the session timeout after a kill.
func TestHandoverTimeOfEachKind(t *testing.T) {
	for name, lock := range eachKind() {
		t.Run(name, func(t *testing.T) {
			for seed := uint64(1); seed <= 10; seed++ {
				cfg := noFaults(seed)
				cfg.Locks = []LockConfig{lock}
				w := startWorld(cfg)
				h := w.waitForContention(t)
				h.client.run(actorWork, h.client.actor(h.id).release)
				if took := w.nextGrant(t); took > 150*time.Millisecond {
					t.Fatalf("seed %d: granted %v after a release\n%s", seed, took, w.Tail())
				}
				w.waitForContention(t).client.machine.kill(true)
				if took := w.nextGrant(t); took > cfg.Timeout+150*time.Millisecond {
					t.Fatalf("seed %d: granted %v after a kill\n%s", seed, took, w.Tail())
				}
			}
		})
	}
}

// waitForHold runs the world until there is a wanted hold.
func (w *World) waitForHold(t *testing.T, wanted func(h *hold) bool) (found *hold) {
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

// TestLockDelay checks that an acquire with a lock delay waits after a holder crashed, and
// that an acquire without one does not.
func TestLockDelay(t *testing.T) {
	const delay = time.Second
	kept, ignored := 0, 0
	for seed := uint64(1); seed <= 20; seed++ {
		cfg := noFaults(seed)
		cfg.LockDelay = delay
		w := startWorld(cfg)
		h := w.waitForHold(t, func(h *hold) bool { return h.claim.spec.Delay > 0 && h.parts[0].trace != nil })
		h.client.machine.kill(true)
		w.runUntil(func() bool { return h.parts[0].trace.vanished != 0 })
		vanished := w.now
		next := w.waitForHold(t, func(o *hold) bool { return o != h })
		switch took := w.now - vanished; {
		case next.claim.spec.Delay == 0 && took < delay:
			ignored++
		case next.claim.spec.Delay > 0 && took < delay*98/100, took > delay+500*time.Millisecond:
			t.Errorf("seed %d: granted %v after the holder vanished, with a delay of %v", seed, took, next.claim.spec.Delay)
		default:
			kept++
		}
	}
	if kept == 0 || ignored == 0 {
		t.Errorf("%d acquires waited and %d did not", kept, ignored)
	}
}

// TestReadersNextToDowngradedWriter checks that readers, but no writers, are granted next to a
// downgraded writer.
func TestReadersNextToDowngradedWriter(t *testing.T) {
	for _, layout := range []queue.Layout{queue.Curator, queue.Kazoo, queue.Mixed} {
		granted := 0
		for seed := uint64(1); seed <= 10; seed++ {
			cfg := noFaults(seed)
			cfg.Clients, cfg.NoCancel = 5, true
			cfg.Locks = []LockConfig{{Path: "/locks/a", Writers: 1, Readers: 4, Names: queue.Names{Layout: layout}}}
			w := startWorld(cfg)
			h := w.waitForHold(t, func(h *hold) bool { return h.parts[0].writer })
			a := h.client.actor(h.id)
			a.turn++ // it never releases
			token := h.parts[0].token
			h.client.run(actorWork, a.downgrade)
			before, until := w.Stats.Acquired, w.now+2*time.Second
			w.runUntil(func() bool { return w.now > until })
			if w.err != nil || !h.safe() || !h.parts[0].shared || h.parts[0].token != token {
				t.Fatalf("layout %d, seed %d: held %t, shared %t, %v\n%s", layout, seed, h.safe(), h.parts[0].shared, w.err, w.Tail())
			}
			// checkGrant checks that they are readers.
			granted += w.Stats.Acquired - before
		}
		if granted == 0 {
			t.Errorf("layout %d: no reader was granted next to a downgraded writer", layout)
		}
	}
}

// TestHolderReceivesReleaseRequest checks that a holder receives a release request, whether it
// watches for it before or after the request is made.
func TestHolderReceivesReleaseRequest(t *testing.T) {
	for name, lock := range eachKind() {
		for _, before := range []bool{false, true} {
			cfg := noFaults(7)
			cfg.Locks = []LockConfig{lock}
			w := startWorld(cfg)
			h := w.waitForHold(t, func(h *hold) bool { return !h.watching })
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
			if h.notified != before {
				t.Errorf("%s: notified %t before it watches", name, h.notified)
			}
			if !before {
				h.client.run(actorWork, want)
			}
			w.runUntil(func() bool { return w.now > asked+400*time.Millisecond })
			if w.err != nil || !h.notified || !h.safe() {
				t.Errorf("%s, watches before: %t: notified %t, held %t, %v", name, before, h.notified, h.safe(), w.err)
			}
		}
	}
}

// TestClientsWaitForForeignEntry checks that zklock's clients wait for an entry of another
// library, and that a reader is refused if such an entry does not wait for readers.
func TestClientsWaitForForeignEntry(t *testing.T) {
	for name, lock := range eachKind() {
		cfg := noFaults(3)
		cfg.Locks = []LockConfig{lock}
		w := startWorld(cfg)
		w.waitForHold(t, func(h *hold) bool { return true }) // the parents exist
		w.foreign(w.locks[0])
		w.runUntil(func() bool { return w.now > 15*time.Second })
		if w.err != nil || w.Stats.Acquired < 10 {
			t.Errorf("%s: %d acquired: %v", name, w.Stats.Acquired, w.err)
		}
	}
	cfg := noFaults(3)
	cfg.Locks = []LockConfig{{Path: "/locks/a", Readers: 1}}
	w := startWorld(cfg)
	w.waitForHold(t, func(h *hold) bool { return true })
	w.foreign(w.locks[0])
	w.runUntil(func() bool { return w.Stats.Foreign > 0 || w.now > 30*time.Second })
	if w.err != nil || w.Stats.Foreign == 0 {
		t.Errorf("no reader was refused: %v", w.err)
	}
}

// TestEntryNamesMatchLockCore checks that the simulation and the lock core parse names alike.
func TestEntryNamesMatchLockCore(t *testing.T) {
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
