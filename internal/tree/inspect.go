package tree

import (
	"cmp"
	"slices"

	"github.com/zklock/zklock/internal/wire"
)

// Counts has the present numbers of things, as the four-letter words show them.
type Counts struct {
	Sessions     int
	Connections  int   // with a session
	Nodes        int   // including the tree's own four
	Ephemerals   int   // nodes that end with a session
	Containers   int   // container nodes
	TTLs         int   // TTL nodes
	DataBytes    int64 // approximate size of all data: paths and data, without overhead
	Watches      int   // data and child watches, as ZooKeeper counts
	Watchers     int   // connections with watches
	WatchedPaths int
}

// Counts returns the present numbers. They are maintained incrementally, so the call
// is cheap.
func (t *Tree) Counts() Counts {
	return Counts{
		Sessions: len(t.sessions), Connections: len(t.conns), Nodes: t.nodes.len(),
		Containers: t.containers.count, TTLs: t.ttls.count, DataBytes: t.dataSize, Ephemerals: t.ephemerals,
		Watches: t.watches.total, Watchers: t.watches.watchers, WatchedPaths: len(t.watches.byPath),
	}
}

// SessionCount returns the number of sessions. It is cheaper than Counts.
func (t *Tree) SessionCount() int { return len(t.sessions) }

// SessionInfo describes a session. It has no password, because it may appear in logs
// and on terminals.
type SessionInfo struct {
	ID         int64
	Timeout    int32    // ms
	Conn       ConnID   // valid if Connected
	Connected  bool     // whether the session has a connection
	Ephemerals []string // paths, oldest first
}

// Sessions returns the sessions ordered by ID. The result is a copy.
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

// sessionList returns the sessions ordered by ID. Use it to iterate over all
// sessions, because the order of a map would differ from run to run.
func (t *Tree) sessionList() []*session {
	list := make([]*session, 0, len(t.sessions))
	for _, s := range t.sessions {
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b *session) int { return cmp.Compare(a.id, b.id) })
	return list
}

// Session returns the session of a connection and its timeout in ms. ok is false if
// the connection is unknown.
func (t *Tree) Session(id ConnID) (session int64, timeout int32, ok bool) {
	c, ok := t.conns[id]
	if !ok {
		return 0, 0, false
	}
	return c.session.id, c.session.timeout, true
}

// Get returns a copy of a node's data and its Stat, regardless of access control. ok
// is false if there is no such node. The empty path is the root.
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

// Paths returns the paths of all nodes, parents before children, and siblings in the
// order of creation.
func (t *Tree) Paths() []string {
	list := make([]string, 0, t.nodes.len())
	t.root.walk(func(n *node) bool {
		list = append(list, n.path())
		return true
	})
	return list
}

// Counters count events since the Tree was created or restored. They are for
// monitoring: no decision depends on them, and they are not part of the durable
// state.
type Counters struct {
	Opened       int64 // new sessions, without resumed ones
	Expired      int64 // sessions that timed out
	AuthFailures int64 // connections closed because credentials were refused or a required identity was missing

	// Requests refused because of a limit, by the field of Config that has the limit.
	RefusedNodes, RefusedData, RefusedWatches, RefusedSessions, RefusedReplies int64
}

// Counters returns the counters.
func (t *Tree) Counters() Counters { return t.counters }
