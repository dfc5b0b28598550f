package tree

import (
	"strings"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// addWatchOp sets a persistent watch. The node need not exist, and the path is
// not looked at; what may not be read is filtered when an event goes out.
func (t *Tree) addWatchOp(c *conn, r *jute.Reader) (wire.Record, wire.ErrCode) {
	var q wire.AddWatchRequest
	if q.Decode(r); r.Err() != nil {
		return nil, wire.ErrMarshalling
	}
	switch q.Mode {
	case wire.AddWatchPersistent:
		t.addWatch(q.Path, c, dataPersistent|childPersistent)
	case wire.AddWatchPersistentRecursive:
		t.addWatch(q.Path, c, t.recursiveBits())
	default:
		return nil, wire.ErrMarshalling
	}
	return &wire.ErrorResponse{}, wire.ErrOK
}

// recursiveBits is where a recursive watch stands: among the data watches, and in
// 3.8.0 among the child watches too, where it does nothing but be counted, be
// replaced, and hear of a deletion that the other did not.
func (t *Tree) recursiveBits() watchBits {
	if t.cfg.Compat38 {
		return dataRecursive | childRecursive
	}
	return dataRecursive
}

// typeMask says which watches a request for one type means. 3.8.0 does not know
// the last two types, and takes the first two for all of their table.
func (t *Tree) typeMask(typ wire.WatcherType) (watchBits, bool) {
	compat := t.cfg.Compat38
	switch {
	case typ == wire.WatcherChildren && compat:
		return childMask, true
	case typ == wire.WatcherData && compat:
		return dataMask, true
	case typ == wire.WatcherChildren:
		return childOnce, true
	case typ == wire.WatcherData:
		return dataOnce, true
	case typ == wire.WatcherAny:
		return dataMask | childMask, true
	case typ == wire.WatcherPersistent && !compat:
		return dataPersistent | childPersistent, true
	case typ == wire.WatcherPersistentRecursive && !compat:
		return dataRecursive, true
	}
	return 0, false
}

// checkWatches tells whether the connection has such a watch. Clients ask before
// they remove one that they share among several listeners.
func (t *Tree) checkWatches(c *conn, r *jute.Reader) (wire.Record, wire.ErrCode) {
	var q wire.CheckWatchesRequest
	q.Decode(r)
	mask, ok := t.typeMask(q.Type)
	if r.Err() != nil || !ok {
		return nil, wire.ErrMarshalling
	}
	if t.cfg.Compat38 && !strings.HasPrefix(q.Path, "/") {
		// There the walk up from "" has no first step, and from others no last.
		if q.Path == "" {
			return nil, wire.ErrNoWatcher
		}
		return nil, wire.ErrMarshalling
	}
	if t.watches.bits(q.Path, c)&mask != 0 {
		return nil, wire.ErrOK
	}
	if t.cfg.Compat38 {
		// There everybody's watches count.
		for _, e := range t.watches.byPath[q.Path] {
			if e.bits&mask != 0 {
				return nil, wire.ErrOK
			}
		}
	}
	return nil, wire.ErrNoWatcher
}

// removeWatches takes such watches of the connection away. As in Java no event
// tells of it: the client that asked knows.
func (t *Tree) removeWatches(c *conn, r *jute.Reader) (wire.Record, wire.ErrCode) {
	var q wire.RemoveWatchesRequest
	q.Decode(r)
	mask, ok := t.typeMask(q.Type)
	if r.Err() != nil || !ok {
		return nil, wire.ErrMarshalling
	}
	bits := t.watches.bits(q.Path, c)
	if bits&mask == 0 {
		return nil, wire.ErrNoWatcher
	}
	t.watches.set(q.Path, c, bits&^mask)
	return nil, wire.ErrOK
}
