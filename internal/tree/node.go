package tree

import (
	"math"
	"strings"

	"github.com/zklock/zklock/internal/wire"
)

// Ephemeral owners that are not sessions (org.apache.zookeeper.server.EphemeralType):
// the one of containers, and the top byte of TTL nodes, whose lower 40 bits are the
// TTL in milliseconds.
const (
	containerOwner int64 = math.MinInt64
	ttlMask        int64 = -1 << 56
	maxTTL         int64 = 1<<40 - 1
)

// ownerKind is the kind of a node, as its ephemeral owner encodes it.
type ownerKind uint8

const (
	persistent ownerKind = iota
	ephemeral
	container
	ttlNode
)

// kindOf returns the kind for an owner. Session IDs never have a top byte of 0x80 or
// 0xff, so the kinds are distinct.
func kindOf(owner int64) ownerKind {
	switch {
	case owner == 0:
		return persistent
	case owner == containerOwner:
		return container
	case owner&ttlMask == ttlMask:
		return ttlNode
	}
	return ephemeral
}

// node is one znode. The siblings form a list in the order of creation. So children
// have the same order after a replay, and are added and removed in constant time
// without a table for each parent.
//
// There may be millions of nodes. The fields are chosen so that a node has 80 bytes,
// one of the allocator's size classes.
type node struct {
	text      string // the path, then the data
	dataStart int32  // start of the data; ^dataStart if the data is null, as in Java
	acl       aclNumber

	// Links in the tree. Lookups by path use Tree.nodes. These links serve listings,
	// walks, and the parent's Stat.
	parent     *node
	prev, next *node      // siblings
	extra      *nodeExtra // nil if it would equal extraOrNew's value for a new node

	owner int64 // as stored, see kindOf
	czxid int64 // transaction that created the node
	ctime int64 // wall clock at czxid, ms
}

// nodeExtra holds the fields that most nodes do not need, because they never have
// children and keep their initial data and permissions.
type nodeExtra struct {
	first, last *node
	pzxid       int64 // transaction that last created or deleted a child
	mzxid       int64 // transaction that last set the data
	mtime       int64 // wall clock at mzxid, ms
	// These are maintained incrementally, because requests read them for many nodes
	// at once.
	belowBytes     int64 // size of the data of all descendants
	nameBytes      int64 // size of the children's names
	below          int32 // number of descendants
	children       int32 // length of the list of children
	creates        int32 // Java's stored cversion: how many children were ever created
	version        int32 // of the data
	aversion       int32 // of the access control list
	recursiveWatch bool  // there may be a recursive watch on the path
	hasQuota       bool  // there may be a quota for the path
}

// extraOrNew returns a copy of the node's extra fields, or the values of a new node.
func (n *node) extraOrNew() nodeExtra {
	if n.extra == nil {
		return nodeExtra{pzxid: n.czxid, mzxid: n.czxid, mtime: n.ctime}
	}
	return *n.extra
}

// ensureExtra returns the node's extra fields for modification.
func (n *node) ensureExtra() *nodeExtra {
	if n.extra == nil {
		r := n.extraOrNew()
		n.extra = &r
	}
	return n.extra
}

// setText sets the path and the data; nil is Java's null. Both are copied, because
// path may be a part of the previous text, whose memory is to be freed when nothing
// refers to it any more.
func (n *node) setText(path string, data []byte) {
	n.dataStart = int32(len(path))
	if data == nil {
		n.dataStart = ^n.dataStart
	}
	var b strings.Builder
	b.Grow(len(path) + len(data))
	b.WriteString(path)
	b.Write(data)
	n.text = b.String()
}

// pathLen returns the length of the path.
func (n *node) pathLen() int {
	if n.dataStart < 0 {
		return int(^n.dataStart)
	}
	return int(n.dataStart)
}

// path returns the node's path. It shares the node's memory.
func (n *node) path() string { return n.text[:n.pathLen()] }

// data returns the node's data, or "" if it is null. It shares the node's memory.
func (n *node) data() string { return n.text[n.pathLen():] }

// null reports whether the data is null, which differs from empty data.
func (n *node) null() bool { return n.dataStart < 0 }

// name returns the name of a node with a parent. It shares the node's memory. It does not
// search the path, because a name may have a megabyte.
func (n *node) name() string {
	path := n.path()
	return path[len(path)-int(n.nameLen()):]
}

// nameLen returns the length of the name of a node with a parent.
func (n *node) nameLen() int64 {
	if p := n.parent; p.parent != nil {
		return int64(n.pathLen() - p.pathLen() - 1)
	}
	return int64(n.pathLen() - 1)
}

// stat returns the Stat that clients see. Its cversion counts creates and deletes,
// and the owner of containers and TTL nodes is hidden (DataNode.copyStat).
func (n *node) stat() wire.Stat {
	s := wire.Stat{
		Czxid: n.czxid, Mzxid: n.czxid, Pzxid: n.czxid, Ctime: n.ctime, Mtime: n.ctime,
		DataLength: int32(len(n.data())),
	}
	if r := n.extra; r != nil {
		s.Mzxid, s.Mtime, s.Pzxid, s.NumChildren = r.mzxid, r.mtime, r.pzxid, r.children
		s.Version, s.Cversion, s.Aversion = r.version, r.creates*2-r.children, r.aversion
	}
	if kindOf(n.owner) == ephemeral {
		s.EphemeralOwner = n.owner
	}
	return s
}

// attach appends n, which has no children, to the children of p.
func (p *node) attach(n *node) {
	r := p.ensureExtra()
	n.parent, n.prev = p, r.last
	if r.last != nil {
		r.last.next = n
	} else {
		r.first = n
	}
	r.last = n
	r.children++
	r.nameBytes += n.nameLen()
	n.countAbove(1, int64(len(n.data())))
}

// countAbove adds nodes and bytes of data to the counters of all ancestors of n. The
// depth of a path is bounded, see maxDepth.
func (n *node) countAbove(nodes int32, bytes int64) {
	if nodes == 0 && bytes == 0 {
		return
	}
	for p := n.parent; p != nil; p = p.parent {
		p.extra.below += nodes
		p.extra.belowBytes += bytes
	}
}

// detach removes n from its parent's children. The parent's create counter does not
// change, so sequence numbers are never reused.
func (n *node) detach() {
	r := n.parent.extra
	r.nameBytes -= n.nameLen()
	n.countAbove(-1, -int64(len(n.data())))
	if n.prev != nil {
		n.prev.next = n.next
	} else {
		r.first = n.next
	}
	if n.next != nil {
		n.next.prev = n.prev
	} else {
		r.last = n.prev
	}
	n.parent, n.prev, n.next = nil, nil, nil
	r.children--
}

// walk calls f for n and all its descendants, parents first, until f returns false.
// It uses no stack, because paths may be deep.
func (n *node) walk(f func(*node) bool) {
	at := n
	for f(at) {
		if first := at.extraOrNew().first; first != nil {
			at = first
			continue
		}
		for at.next == nil || at == n {
			if at == n {
				return
			}
			at = at.parent
		}
		at = at.next
	}
}

// size returns what the node contributes to the approximate size of all data, as in
// Java: its path and its data.
func (n *node) size() int64 {
	return int64(len(n.text))
}
