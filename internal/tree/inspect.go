package tree

import (
	"cmp"
	"slices"

	"github.com/zklock/zklock/internal/wire"
)

// Counts is how much of everything there is, as the four-letter words show it.
type Counts struct {
	Sessions     int
	Connections  int   // with a session
	Nodes        int   // the tree's own four included
	Ephemerals   int   // nodes that end with a session
	Containers   int   // container nodes
	TTLs         int   // TTL nodes
	DataBytes    int64 // approximate size of all data: paths and data, no overhead
	Watches      int   // data and child watches, as ZooKeeper counts
	Watchers     int   // connections that have watches
	WatchedPaths int
}

// Counts returns what is counted as it comes and goes: it looks at nothing.
func (t *Tree) Counts() Counts {
	return Counts{
		Sessions: len(t.sessions), Connections: len(t.conns), Nodes: t.nodes.len(),
		Containers: t.containers.live, TTLs: t.ttls.live, DataBytes: t.dataSize, Ephemerals: t.ephemerals,
		Watches: t.watches.total, Watchers: t.watches.watchers, WatchedPaths: len(t.watches.byPath),
	}
}

// SessionCount is the number of sessions. Unlike Counts it costs nothing.
func (t *Tree) SessionCount() int { return len(t.sessions) }

// SessionInfo is a session as seen from outside. It has no password: what is shown
// ends up in logs and on terminals.
type SessionInfo struct {
	ID         int64
	Timeout    int32    // ms
	Conn       ConnID   // meaningful if Connected
	Connected  bool     // whether a connection has it
	Ephemerals []string // paths, oldest first
}

// Sessions lists the sessions by id. The result is a copy.
func (t *Tree) Sessions() []SessionInfo {
	list := make([]SessionInfo, 0, len(t.sessions))
	for _, s := range t.sessionList() {
		info := SessionInfo{ID: s.id, Timeout: s.timeout}
		if s.conn != nil {
			info.Conn, info.Connected = s.conn.id, true
		}
		for _, n := range s.ownedNodes() {
			info.Ephemerals = append(info.Ephemerals, n.path())
		}
		list = append(list, info)
	}
	return list
}

// sessionList lists the sessions by id. Whatever goes through all sessions does
// it by this list: a map's order would differ from run to run.
func (t *Tree) sessionList() []*session {
	list := make([]*session, 0, len(t.sessions))
	for _, s := range t.sessions {
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b *session) int { return cmp.Compare(a.id, b.id) })
	return list
}

// Session returns the session of a connection and its timeout in ms; ok is
// false if the connection has none.
func (t *Tree) Session(id ConnID) (session int64, timeout int32, ok bool) {
	c, ok := t.conns[id]
	if !ok {
		return 0, 0, false
	}
	return c.session.id, c.session.timeout, true
}

// Watch is what one connection watches on one path.
type Watch struct {
	Path    string
	Conn    ConnID
	Session int64
}

// Watches lists the watches by path, and within one in the order they were set.
func (t *Tree) Watches() []Watch {
	var list []Watch
	for path, entries := range t.watches.byPath {
		for _, e := range entries {
			list = append(list, Watch{path, e.conn.id, e.conn.session.id})
		}
	}
	slices.SortStableFunc(list, func(a, b Watch) int { return cmp.Compare(a.Path, b.Path) })
	return list
}

// Get returns a copy of a node's data and its Stat, without regard to access
// control; ok is false if there is no such node. The empty path is the root.
func (t *Tree) Get(path string) (data []byte, stat wire.Stat, ok bool) {
	n := t.lookup(path)
	if n == nil {
		return nil, wire.Stat{}, false
	}
	if !n.null() {
		data = []byte(n.data())
	}
	return data, n.stat(), true
}

// Paths lists all nodes, parents before children and those in the order of
// creation.
func (t *Tree) Paths() []string {
	list := make([]string, 0, t.nodes.len())
	t.root.walk(func(n *node) bool {
		list = append(list, n.path())
		return true
	})
	return list
}
