package tree

import (
	"github.com/zklock/zklock/internal/wire"
)

// Bounds of what clients can make a Tree hold, where Config gives none. ZooKeeper
// has none of them: its heap is the limit, and everybody's end.
const (
	defaultMaxNodes    = 10_000_000
	defaultMaxData     = 4 << 30
	defaultMaxWatches  = 2_000_000
	defaultMaxSessions = 1_000_000
	defaultMaxReply    = 32 << 20

	// maxIdentities is how many identities one connection may prove, and
	// maxIdentityBytes how long all of them together may be: nobody need have a
	// session for them, and MaxData does not count them.
	maxIdentities    = 64
	maxIdentityBytes = 64 << 10
	// maxACL is how many entries the list of one node may have.
	maxACL = 10_000
	// listedCost is what a name in a list of children counts against MaxReply besides
	// its bytes: to look it up takes longer than to copy it, some 0.13 us where the
	// nodes are scattered in memory. With the default, a list of 300,000 short names
	// is answered, which takes some 40 ms.
	listedCost = 96
	// maxOps is how many operations a multi may have: it is applied in one step, for
	// which all other clients wait.
	maxOps = 10_000
	// maxListed is how many ephemeral nodes a session may have that asks for a list of
	// them.
	maxListed = 50_000
)

// withDefaultLimits replaces the limits that are zero.
func (c *Config) withDefaultLimits() {
	if c.MaxNodes < 1 {
		c.MaxNodes = defaultMaxNodes
	}
	if c.MaxData < 1 {
		c.MaxData = defaultMaxData
	}
	if c.MaxWatches < 1 {
		c.MaxWatches = defaultMaxWatches
	}
	if c.MaxSessions < 1 {
		c.MaxSessions = defaultMaxSessions
	}
	if c.MaxReply < 1 {
		c.MaxReply = defaultMaxReply
	}
}

// growth is by how much transactions change what the limits are about.
type growth struct {
	nodes int
	bytes int64
}

// used is what counts for MaxData: all that clients can make as long as they like
// and that stays.
func (t *Tree) used() int64 {
	return t.dataSize + t.acls.bytes + t.watches.bytes
}

// room reports whether there is room for what x adds.
func (t *Tree) room(x *txn) wire.ErrCode {
	var g growth
	g.add(t, x, nil)
	return t.allows(g)
}

// roomForMulti is room for all operations of a multi at once, so that one may make
// the room that another takes. With an error it gives the operation to blame: the
// first that there was no room for.
func (t *Tree) roomForMulti(subs []txn) (int, wire.ErrCode) {
	var all growth
	sizes := make(map[string]int64, len(subs))
	for i := range subs {
		all.add(t, &subs[i], sizes)
	}
	if !t.exceeds(all) {
		return 0, wire.ErrOK
	}
	var g growth
	clear(sizes)
	for i := range subs {
		if g.add(t, &subs[i], sizes); t.exceeds(g) {
			return i, t.allows(g)
		}
	}
	return 0, t.allows(all)
}

// exceeds reports whether there is no room for g.
func (t *Tree) exceeds(g growth) bool {
	return g.nodes > 0 && t.nodes.len()+g.nodes > t.cfg.MaxNodes || g.bytes > 0 && t.used()+g.bytes > t.cfg.MaxData
}

// allows answers whether there is room for g, and counts if there is not. What
// makes something smaller is always allowed.
func (t *Tree) allows(g growth) wire.ErrCode {
	switch {
	case !t.exceeds(g):
		return wire.ErrOK
	case g.nodes > 0 && t.nodes.len()+g.nodes > t.cfg.MaxNodes:
		t.tallies.RefusedNodes++
	default:
		t.tallies.RefusedData++
	}
	return wire.ErrQuotaExceeded
}

// add adds what x does. sizes has the length of the data of nodes that earlier
// operations of a multi touched; nil outside a multi. A new node's list of
// permissions counts as if no other node had it: equal ones are stored once, so
// that this is too much rather than too little.
func (g *growth) add(t *Tree, x *txn, sizes map[string]int64) {
	old, known := sizes[x.path]
	if n := t.nodes.get(x.path); !known && n != nil {
		old = int64(len(n.data()))
	}
	size := int64(len(x.data))
	switch x.op {
	case wire.OpCreate:
		g.nodes++
		g.bytes += int64(len(x.path)) + size + aclCost(x.acl)
	case wire.OpSetData:
		g.bytes += size - old
	case wire.OpDelete:
		g.nodes--
		g.bytes -= int64(len(x.path)) + old
	case wire.OpSetACL:
		if n := t.nodes.get(x.path); n != nil {
			g.bytes += t.acls.growth(t.acls.of(n), x.acl)
		}
		return
	default:
		return
	}
	if sizes != nil {
		sizes[x.path] = size
	}
}

// aclCost is about what a list takes in memory: its entries, their texts, those
// once more in the key by which it is found, and the index of a long one.
func aclCost(list []wire.ACL) int64 {
	const entry, indexed = 64, 64
	size := int64(0)
	if len(list) > shortACL {
		size = indexed * int64(len(list))
	}
	for i := range list {
		size += entry + 2*int64(len(list[i].Scheme)+len(list[i].ID))
	}
	return size
}

// roomForWatch reports whether c may have one more watch on path, on which it has
// those in had. If not, the request that wants it is refused: see takeRefusal.
func (t *Tree) roomForWatch(path string, c *conn, had, want watchBits) bool {
	if want.count() <= had.count() {
		return true
	}
	w := &t.watches
	if w.total+want.count()-had.count() <= t.cfg.MaxWatches &&
		(had != 0 || t.watchShare(c) && t.used()+int64(len(path)) <= t.cfg.MaxData) {
		return true
	}
	t.watchRefused = true
	return false
}

// watchShare reports whether c may watch one more path. A connection with few watches
// is not held up by others of its address. See shares.
func (t *Tree) watchShare(c *conn) bool {
	all, each, has := t.cfg.MaxWatches, t.cfg.MaxWatchesPerConn, len(c.watched)
	free := all - t.watches.total
	switch {
	case each > 0 && has >= each:
		return false
	case has < all/fewPart:
		return true
	case each < 1 && has >= free-all/reservedPart:
		return false
	}
	return t.watches.shares.allow(c.share, free, all)
}

// takeRefusal reports whether a watch was refused since it was last called. A
// client that believes in a watch which is not there would wait for ever.
func (t *Tree) takeRefusal() bool {
	refused := t.watchRefused
	t.watchRefused = false
	if refused {
		t.tallies.RefusedWatches++
	}
	return refused
}
