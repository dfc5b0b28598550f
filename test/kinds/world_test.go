package kinds

import (
	"slices"
	"testing"

	"github.com/zklock/zklock/test/history"
)

var (
	write = []history.Claim{{Path: "/x", Mode: history.Exclusive}}
	read  = []history.Claim{{Path: "/x", Mode: history.Shared}}
	node  = []history.Claim{{Path: "/n", Mode: Node}}
	both  = []history.Claim{{Path: "/x", Mode: history.Exclusive}, {Path: "/y", Mode: history.Exclusive}}
	other = []history.Claim{{Path: "/y", Mode: history.Exclusive}}
)

func some(k int) []history.Claim {
	return []history.Claim{{Path: "/s", Mode: history.Permit, Permits: k, Of: 3}}
}

// asked is a world in which clients 1, 2, ... have asked one after the other.
func asked(t *testing.T, claims ...[]history.Claim) *World {
	t.Helper()
	w := NewWorld()
	for i, c := range claims {
		w = only(t, w.Arrive(i+1, i+1, c).Settle())
	}
	return w
}

func only(t *testing.T, worlds []*World) *World {
	t.Helper()
	if len(worlds) != 1 {
		t.Fatalf("%d worlds: %v", len(worlds), worlds)
	}
	return worlds[0]
}

func holds(t *testing.T, w *World, ids ...int) {
	t.Helper()
	if !slices.Equal(w.Held(), ids) {
		t.Errorf("%v hold, not %v: %v", w.Held(), ids, w)
	}
}

// TestWorld: the model of the locks is as the locks are described.
func TestWorld(t *testing.T) {
	t.Run("in the order of arrival", func(t *testing.T) {
		w := asked(t, write, write, write)
		holds(t, w, 1)
		w = only(t, w.Leave(2).Settle())
		holds(t, w, 1)
		holds(t, only(t, w.Exit(1).Settle()), 3)
	})
	t.Run("readers share, writers do not", func(t *testing.T) {
		w := asked(t, read, read, write, read)
		holds(t, w, 1, 2)
		w = only(t, w.Exit(1).Settle())
		holds(t, w, 2)
		w = only(t, w.Exit(2).Settle())
		holds(t, w, 3)
		holds(t, only(t, w.Lower(3).Settle()), 3, 4)
		holds(t, only(t, w.Exit(3).Settle()), 4)
	})
	t.Run("a downgrade lets no writer in", func(t *testing.T) {
		w := asked(t, write, write, read)
		holds(t, only(t, w.Lower(1).Settle()), 1)
	})
	t.Run("levels", func(t *testing.T) {
		w := asked(t, write, write).Enter(1)
		w = only(t, w.Exit(1).Settle())
		holds(t, w, 1)
		holds(t, only(t, w.Exit(1).Settle()), 2)
	})
	t.Run("permits, in the order of arrival", func(t *testing.T) {
		w := asked(t, some(2), some(2), some(1))
		holds(t, w, 1) // 3 would fit, but 2 keeps the gate
		w = only(t, w.Exit(1).Settle())
		holds(t, w, 2, 3)
	})
	t.Run("all or nothing", func(t *testing.T) {
		w := asked(t, other, both, write)
		holds(t, w, 1)
		holds(t, only(t, w.Leave(2).Settle()), 1, 3)
		w = only(t, w.Exit(1).Settle())
		holds(t, w, 2)
		holds(t, only(t, w.Exit(2).Settle()), 3)
	})
	t.Run("semaphores come after the queues", func(t *testing.T) {
		w := asked(t, write, append(slices.Clone(write), some(3)...), some(1))
		holds(t, w, 1, 3)
		w = only(t, w.Exit(1).Settle())
		holds(t, w, 3)
		holds(t, only(t, w.Exit(3).Settle()), 2)
	})
	t.Run("any waiter of a node", func(t *testing.T) {
		w := asked(t, node, node, node)
		holds(t, w, 1)
		worlds := w.Exit(1).Settle()
		if len(worlds) != 2 {
			t.Fatalf("%v", worlds)
		}
		for _, w := range worlds {
			if len(w.Held()) != 1 || w.Held()[0] == 1 {
				t.Error(w)
			}
		}
	})
	t.Run("a session's end", func(t *testing.T) {
		w := NewWorld().Arrive(1, 1, write).Settle()[0]
		w = w.Arrive(2, 1, write).Settle()[0] // a waiter of the same client
		w = w.Arrive(3, 2, write).Settle()[0]
		w = only(t, w.Expire(1).Settle())
		holds(t, w, 3)
		if !slices.Equal(w.Waiting(), []int{2}) {
			t.Error(w)
		}
		holds(t, only(t, w.Exit(3).Settle()), 2)
	})
	t.Run("a session's end with two that wait", func(t *testing.T) {
		w := NewWorld().Arrive(1, 1, write).Settle()[0]
		w = w.Arrive(2, 2, write).Settle()[0]
		w = w.Arrive(3, 2, write).Settle()[0]
		if worlds := w.Expire(2).Settle(); len(worlds) != 2 {
			t.Error(worlds)
		}
	})
}
