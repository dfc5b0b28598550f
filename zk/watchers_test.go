package zk

import (
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// watchState returns "open", "closed", or the type of the event in the channel.
func watchState(ch <-chan Event) any {
	select {
	case e, ok := <-ch:
		if !ok {
			return "closed"
		}
		return e.Type
	default:
		return "open"
	}
}

func TestChannelsReceiveMatchingEvents(t *testing.T) {
	for _, row := range []struct {
		event          wire.EventType
		data, children bool
	}{
		{wire.EventNodeCreated, true, false},
		{wire.EventNodeDeleted, true, true},
		{wire.EventNodeDataChanged, true, false},
		{wire.EventNodeChildrenChanged, false, true},
		{wire.EventDataWatchRemoved, true, false},
		{wire.EventChildWatchRemoved, false, true},
		{wire.EventPersistentWatchRemoved, false, false},
	} {
		var w watchers
		data, kids := w.add(&w.data, "/a"), w.add(&w.children, "/a")
		other := w.add(&w.data, "/b")
		w.fire(row.event, "/a", Event{Type: EventType(row.event)})
		w.fire(row.event, "/a", Event{Type: EventType(row.event)}) // no channel is left
		for ch, want := range map[<-chan Event]bool{data: row.data, kids: row.children, other: false} {
			got := watchState(ch)
			if want != (got == EventType(row.event)) || !want && got != "open" {
				t.Errorf("event %d: %v, want an event: %t", row.event, got, want)
			}
			if want && watchState(ch) != "closed" {
				t.Errorf("event %d: not closed after its event", row.event)
			}
		}
	}
}

func TestChannelsCloseWithTheSession(t *testing.T) {
	var w watchers
	list := []<-chan Event{w.add(&w.data, "/a"), w.add(&w.data, "/a"), w.add(&w.children, "/c")}
	w.closeAll()
	for _, ch := range list {
		if got := watchState(ch); got != "closed" {
			t.Errorf("%v", got)
		}
	}
	w.fire(wire.EventNodeDeleted, "/a", Event{}) // has no effect
	if again := w.add(&w.data, "/a"); watchState(again) != "open" {
		t.Error("the next session's channel is not open")
	}
}

// TestPersistentWatchesIgnoreInvalidEventPaths: a malicious server can send any path.
func TestPersistentWatchesIgnoreInvalidEventPaths(t *testing.T) {
	var w watchers
	fired := 0
	w.addPersistent(&persistentWatch{path: "/a", mode: WatchRecursive, f: func(Event) { fired++ }})
	for _, path := range []string{"", "x", "x/y", "//", "/", "/a", "/a/", "/ab", "/a//b/c"} {
		w.fire(wire.EventNodeDataChanged, path, Event{Type: EventNodeDataChanged})
	}
	if fired != 3 {
		t.Errorf("%d events, want those of /a, /a/, and /a//b/c", fired)
	}
}

// TestEventPathOfAMillionNamesIsCheap checks that the time for an event does not grow with the
// square of the length of its path. If one event of a malicious server took a minute, all holds
// would be lost.
func TestEventPathOfAMillionNamesIsCheap(t *testing.T) {
	var w watchers
	fired := map[string]int{}
	for _, path := range []string{"/", "/a", "/a/b", "/a/bc", "/c", "/d", "/e", "/f", "/g", "/h"} {
		w.addPersistent(&persistentWatch{path: path, mode: WatchRecursive, f: func(Event) { fired[path]++ }})
	}
	began := time.Now()
	path := "/a/b" + strings.Repeat("/", wire.DefaultMaxFrame)
	w.fire(wire.EventNodeCreated, path, Event{Type: EventNodeCreated})
	if took := time.Since(began); took > time.Minute {
		t.Errorf("one event took %v", took)
	}
	if len(fired) != 3 || fired["/"] != 1 || fired["/a"] != 1 || fired["/a/b"] != 1 {
		t.Errorf("events %v", fired)
	}
}
