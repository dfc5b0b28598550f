package zk

import (
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// state returns the state of a channel: "open", "closed", or the type of its event.
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
		w.fire(row.event, "/a", Event{Type: EventType(row.event)}) // nobody is left
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
	w.fire(wire.EventNodeDeleted, "/a", Event{}) // as nobody waits, nothing happens
	if again := w.add(&w.data, "/a"); watchState(again) != "open" {
		t.Error("the next session's channel is not open")
	}
}

// TestHostileEventPathsOfPersistentWatches: a server can send any path.
func TestHostileEventPathsOfPersistentWatches(t *testing.T) {
	var w watchers
	told := 0
	w.addPersistent(&persistentWatch{path: "/a", mode: WatchRecursive, f: func(Event) { told++ }})
	for _, path := range []string{"", "x", "x/y", "//", "/", "/a", "/a/", "/ab", "/a//b/c"} {
		w.fire(wire.EventNodeDataChanged, path, Event{Type: EventNodeDataChanged})
	}
	if told != 3 {
		t.Errorf("%d events, want those of /a, /a/, and /a//b/c", told)
	}
}

// TestEventPathOfAMillionNamesIsCheap: the time that a path of a hostile server takes does
// not grow with the square of its length. A minute of delivery would end every hold.
func TestEventPathOfAMillionNamesIsCheap(t *testing.T) {
	var w watchers
	told := map[string]int{}
	for _, path := range []string{"/", "/a", "/a/b", "/a/bc", "/c", "/d", "/e", "/f", "/g", "/h"} {
		w.addPersistent(&persistentWatch{path: path, mode: WatchRecursive, f: func(Event) { told[path]++ }})
	}
	began := time.Now()
	path := "/a/b" + strings.Repeat("/", wire.DefaultMaxFrame)
	w.fire(wire.EventNodeCreated, path, Event{Type: EventNodeCreated})
	if took := time.Since(began); took > time.Minute {
		t.Errorf("one event took %v", took)
	}
	if len(told) != 3 || told["/"] != 1 || told["/a"] != 1 || told["/a/b"] != 1 {
		t.Errorf("told %v", told)
	}
}
