package inspect

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// TestFloodOfNewLocksIsBounded: a client creates entries below ever new parents, faster than
// the watcher reads. The watcher remembers a bounded number of them, and lists all locks
// again later. It searches its locks for one to drop at most once a second.
func TestFloodOfNewLocksIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewWatcher(zktest.Start(t).Dial(t), nil)
		defer s.Close()
		const many = maxTracks + 1000
		entry := func(i int) string {
			return fmt.Sprintf("/zklock/x%d/_c_%08x-0000-0000-0000-000000000000-lock-0000000000", i, i)
		}
		s.onEvent(zk.Event{Type: zk.EventNodeCreated, Path: entry(0)})
		s.onDrained()
		s.tracks["/zklock/x0"].changed = true // its release was read, and is not published
		for i := range many {
			s.onEvent(zk.Event{Type: zk.EventNodeCreated, Path: entry(i)})
			s.onEvent(zk.Event{Type: zk.EventNodeDeleted, Path: entry(i)})
		}
		s.onDrained()
		if len(s.tracks) != maxTracks || len(s.dirty) != maxTracks || !s.missedEvents() {
			t.Errorf("%d locks are remembered, %d are outdated, missed %v; want %d, and missed", len(s.tracks), len(s.dirty), s.missedEvents(), maxTracks)
		}
		for path, track := range s.tracks {
			track.dirty = time.Time{}
			track.changed = path == "/zklock/x0"
		}
		s.dirty = nil
		last := fmt.Sprintf("/zklock/x%d", many)
		s.onEvent(zk.Event{Type: zk.EventNodeCreated, Path: entry(many)})
		s.onDrained()
		if s.tracks[last] != nil {
			t.Error("the watcher searched its locks again within a second")
		}
		time.Sleep(time.Second)
		s.onEvent(zk.Event{Type: zk.EventNodeCreated, Path: entry(many)})
		s.onDrained()
		if s.tracks[last] == nil || s.tracks["/zklock/x0"] == nil {
			t.Error("the watcher does not follow a new lock in place of a free one, or dropped one that is not published")
		}
	})
}

// TestFloodOfNodeLocksIsBounded: a client creates and deletes node locks at ever new paths. The
// watcher reads each of them, but remembers no more than a bounded number of locks.
func TestFloodOfNodeLocksIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		z := zktest.Start(t).Dial(t)
		s := NewWatcher(z, nil)
		defer s.Close()
		if _, _, err := z.Create(t.Context(), "/zklock", nil, nil, zk.ModePersistent); err != nil {
			t.Fatal(err)
		}
		const many = 100
		created := 0
		visit := func(n int) {
			t.Helper()
			for range n {
				created++
				path := fmt.Sprintf("/zklock/node%d", created)
				if _, _, err := z.Create(t.Context(), path, nil, nil, zk.ModeEphemeral); err != nil {
					t.Fatal(err)
				}
				s.onEvent(zk.Event{Type: zk.EventNodeCreated, Path: path})
				s.onDrained()
				s.checkNode(t.Context(), path)
				if err := z.Delete(t.Context(), path, -1); err != nil {
					t.Fatal(err)
				}
				s.onEvent(zk.Event{Type: zk.EventNodeDeleted, Path: path})
				s.onDrained()
			}
			if len(s.newNodes) != 0 {
				t.Errorf("%d znodes are still to be checked", len(s.newNodes))
			}
		}
		visit(many)
		if len(s.tracks) != many || s.missedEvents() {
			t.Fatalf("%d of %d node locks are remembered, missed %v", len(s.tracks), many, s.missedEvents())
		}
		for i := range maxTracks - many {
			s.trackOf(fmt.Sprintf("/zklock/x%d", i)).dirty = time.Now()
		}
		visit(many)
		if len(s.tracks) != maxTracks || !s.missedEvents() {
			t.Errorf("%d locks are remembered, missed %v; want %d, and missed", len(s.tracks), s.missedEvents(), maxTracks)
		}
		for _, track := range s.tracks { // all were read, and are free
			track.dirty = time.Time{}
		}
		time.Sleep(time.Second)
		visit(1)
		if s.tracks[fmt.Sprintf("/zklock/node%d", created)] == nil || len(s.tracks) > maxTracks {
			t.Errorf("a new node lock is not followed in place of a free lock; %d are", len(s.tracks))
		}
	})
}
