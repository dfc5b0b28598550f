package tree

import (
	"github.com/zklock/zklock/internal/wire"
)

// Limits of what clients can make a Tree store, where Config has none. ZooKeeper has
// no such limits: its heap is the limit, and exceeding it ends the service for all
// clients.
const (
	defaultMaxNodes    = 10_000_000
	defaultMaxData     = 4 << 30
	defaultMaxWatches  = 2_000_000
	defaultMaxSessions = 1_000_000
	defaultMaxReply    = 32 << 20

	// maxIdentities is how many identities one connection may prove. maxIdentityBytes
	// is their maximum total length. They need no session, and MaxData does not count
	// them.
	maxIdentities    = 64
	maxIdentityBytes = 64 << 10
	// mostIdentities is how many identities a connection can have: SASL adds up to two, and a
	// digest can add that of the super user.
	mostIdentities = maxIdentities + 3
	// maxACL is the maximum number of entries in the list of one node.
	maxACL = 10_000
	// listedCost is the number of bytes that each name in a list of children counts against
	// MaxReply in addition to its own. Looking up a name takes longer than copying it: about
	// 0.13 us if the nodes are scattered in memory. The default permits a list of 300,000
	// short names, which takes about 40 ms.
	listedCost = 96
	// multiReadShare is the part of Config.MaxReply that a multiRead of several
	// results may take.
	multiReadShare = 2
	// pathsPart is the divisor for the part of Config.MaxData that watched paths may have
	// in addition to it.
	pathsPart = 8
	// maxOps is the maximum number of operations in a multi. It is applied in one
	// step, for which all other clients wait: about 5 us for each create.
	maxOps = 5_000
	// maxListed is the maximum number of ephemeral nodes of a session that requests a
	// list of them.
	maxListed = 50_000
)

// withDefaultLimits replaces limits that are zero by defaults.
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

// growth is how much transactions change the limited quantities.
type growth struct {
	nodes int
	bytes int64
}

// used returns what counts for MaxData: everything of arbitrary size that clients can
// create and that stays after their connections. Paths of watches have a part of their
// own: a client without any permission can set watches.
func (t *Tree) used() int64 { return t.dataSize + t.acls.bytes }

// checkLimits checks that the growth by x is permitted.
func (t *Tree) checkLimits(x *txn) wire.ErrCode {
	var g growth
	g.add(t, x, nil)
	return t.allows(g)
}

// checkMultiLimits checks all operations of a multi together, so that one may free
// the space that another uses. With an error it returns the index of the first
// operation that exceeds a limit.
func (t *Tree) checkMultiLimits(subs []txn) (int, wire.ErrCode) {
	var most, all growth
	for i := range subs {
		most.addMost(&subs[i])
	}
	if !t.exceeds(most) {
		return 0, wire.ErrOK // the usual case, without looking up every path
	}
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

// exceeds reports whether g exceeds a limit.
func (t *Tree) exceeds(g growth) bool {
	return g.nodes > 0 && t.nodes.len()+g.nodes > t.cfg.MaxNodes || g.bytes > 0 && t.used()+g.bytes > t.cfg.MaxData
}

// allows checks g against the limits, and counts a refusal. A reduction is always
// permitted.
func (t *Tree) allows(g growth) wire.ErrCode {
	switch {
	case !t.exceeds(g):
		return wire.ErrOK
	case g.nodes > 0 && t.nodes.len()+g.nodes > t.cfg.MaxNodes:
		t.counters.RefusedNodes++
	default:
		t.counters.RefusedData++
	}
	return wire.ErrQuotaExceeded
}

// add adds the growth by x. sizes has the data lengths of nodes that earlier
// operations of a multi touched; it is nil outside a multi. A new node's access
// control list counts as if no other node had it. Equal lists are stored once, so
// this is an upper bound.
func (g *growth) add(t *Tree, x *txn, sizes map[string]int64) {
	old, known := sizes[x.path]
	if n := t.nodes.get(x.path); !known && n != nil {
		old = int64(len(n.data()))
	}
	size := int64(len(x.data))
	switch x.op {
	case wire.OpCreate:
		g.addMost(x)
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

// addMost adds the most that x can add, whatever the state is.
func (g *growth) addMost(x *txn) {
	switch x.op {
	case wire.OpCreate:
		g.nodes++
		g.bytes += int64(len(x.path)+len(x.data)) + aclCost(x.acl)
	case wire.OpSetData:
		g.bytes += int64(len(x.data))
	}
}

// aclCost estimates the memory of a list: its entries in the list and in the index, and
// their texts.
func aclCost(list []wire.ACL) int64 {
	const entry = 128
	size := int64(0)
	for i := range list {
		size += entry + int64(len(list[i].Scheme)+len(list[i].ID))
	}
	return size
}

// checkWatchLimits reports whether c may have the watches want on path, where it has
// had. If not, the request is refused: see takeWatchRefusal.
func (t *Tree) checkWatchLimits(path string, c *conn, had, want watchBits) bool {
	if want.count() <= had.count() || t.mayWatchPath(path, c, had) && t.mayWatch(c, want.count()-had.count()) {
		return true
	}
	t.watchRefused = true
	return false
}

// mayWatchPath reports whether c may watch the path, where it has watches already.
func (t *Tree) mayWatchPath(path string, c *conn, had watchBits) bool {
	if had != 0 {
		return true
	}
	if each := t.cfg.MaxWatchesPerConn; each > 0 && c.watched.len() >= each {
		return false
	}
	w, all := &t.watches, t.cfg.MaxData/pathsPart
	_, has := c.watched.use()
	more, free := int64(len(path)), all-w.bytes
	return leavesEnough(has, more, free, all) && w.byteShares.mayUse(c.share, has, more, free, all)
}

// mayWatch reports whether c may have n more watches.
func (t *Tree) mayWatch(c *conn, n int) bool {
	w, all, more := &t.watches, int64(t.cfg.MaxWatches), int64(n)
	has, _ := c.watched.use()
	free := all - int64(w.total)
	return (t.cfg.MaxWatchesPerConn > 0 || leavesEnough(has, more, free, all)) && w.shares.mayUse(c.share, has, more, free, all)
}

// takeWatchRefusal reports whether a watch was refused since the last call. A client
// that relies on a watch that does not exist would wait forever.
func (t *Tree) takeWatchRefusal() bool {
	refused := t.watchRefused
	t.watchRefused = false
	if refused {
		t.counters.RefusedWatches++
	}
	return refused
}

// shares counts how much of a limited resource each address uses. An address may use
// as much as is still free, so that it alone gets at most half. The last part of the
// resource is for those that use little. While the resource is plentiful, no address is
// restricted.
type shares map[Share]int64

// Share identifies an address. Zero is a peer that shares with no other.
type Share uint64

const (
	// reservedPart is the divisor for the part of the resource that is reserved for
	// those that use little.
	reservedPart = 8
	// fewPart is the divisor for the amount that counts as little.
	fewPart = 8192
)

// add adds n to the count of an address.
func (s shares) add(addr Share, n int64) {
	if addr == 0 || n == 0 {
		return
	}
	if s[addr] += n; s[addr] == 0 {
		delete(s, addr)
	}
}

// leavesEnough reports whether a user of a resource with has units may use more, if free of all
// units are left. Afterwards, it must not use more than the rest that is not reserved.
func leavesEnough(has, more, free, all int64) bool {
	if has+more <= all/fewPart {
		return more <= free
	}
	return has+more <= free-more-all/reservedPart
}

// mayUse reports whether a connection or session of an address may use more of a resource. If it
// uses little itself, other ones of its address do not restrict it.
func (s shares) mayUse(addr Share, has, more, free, all int64) bool {
	if addr == 0 || has+more <= all/fewPart {
		return more <= free
	}
	return leavesEnough(s[addr], more, free, all)
}
