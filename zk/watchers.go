package zk

import "github.com/zklock/zklock/internal/wire"

// watchers holds the channels that wait for one event each, by server path. Only the
// delivering goroutine uses them. So they need no lock, and see answers and events in
// wire order.
type watchers struct {
	data     map[string][]chan Event // of get and exists
	children map[string][]chan Event
	// persistent holds the functions of AddWatchFunc.
	persistent map[string][]*persistentWatch
	// longest is at least the length of each path in persistent.
	longest int
}

// add returns a channel for the next event on a path.
func (w *watchers) add(table *map[string][]chan Event, path string) <-chan Event {
	if *table == nil {
		*table = make(map[string][]chan Event)
	}
	ch := make(chan Event, 1)
	(*table)[path] = append((*table)[path], ch)
	return ch
}

// fire sends an event to the channels that wait for it, and closes them.
func (w *watchers) fire(t wire.EventType, path string, e Event) {
	switch t {
	case wire.EventNodeCreated, wire.EventNodeDataChanged, wire.EventDataWatchRemoved:
		fire(w.data, path, e)
	case wire.EventNodeDeleted:
		fire(w.data, path, e)
		fire(w.children, path, e)
	case wire.EventNodeChildrenChanged, wire.EventChildWatchRemoved:
		fire(w.children, path, e)
	}
	w.firePersistent(path, e)
}

// fire sends an event to the channels of one table and removes them.
func fire(table map[string][]chan Event, path string, e Event) {
	for _, ch := range table[path] {
		ch <- e // does not block: one event per channel
		close(ch)
	}
	delete(table, path)
}

// closeAll closes all channels and calls all functions for the last time, because the
// session and its watches are over.
func (w *watchers) closeAll() {
	for _, table := range []map[string][]chan Event{w.data, w.children} {
		for _, list := range table {
			for _, ch := range list {
				close(ch)
			}
		}
	}
	persistent := w.persistent
	*w = watchers{}
	for _, list := range persistent {
		for _, p := range list {
			if !p.ended.Load() {
				p.f(Event{Type: EventPersistentWatchRemoved, Path: p.own, Zxid: -1})
			}
		}
	}
}
