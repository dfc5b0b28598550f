package tree

import (
	"math"
	"strings"

	"github.com/zklock/zklock/internal/wire"
)

// Ephemeral owners that are no sessions (org.apache.zookeeper.server.
// EphemeralType): the one of containers, and the top byte of TTL nodes, whose
// lower 40 bits are the time to live in milliseconds.
const (
	containerOwner int64 = math.MinInt64
	ttlMask        int64 = -1 << 56
	maxTTL         int64 = 1<<40 - 1
)

// ownerKind is what an ephemeral owner says of its node.
type ownerKind uint8

const (
	persistent ownerKind = iota
	ephemeral
	container
	ttlNode
)

// kindOf tells the kinds apart. Session ids never have a top byte of 0x80 or
// 0xff, so the three cannot be mistaken for each other.
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

// node is one znode. The siblings form a list in the order of creation: it
// gives children an order that is the same after a replay, and takes any number
// of them in and out in constant time without a table for each parent.
//
// There may be millions: what it holds is chosen so that it is 80 bytes, one of
// the sizes that memory comes in.
type node struct {
	text string // the path, and behind it the data
	cut  int32  // where the data begins; ^cut if there is none, Java's null
	acl  aclNumber

	// The place in the tree. Lookups go by path, through Tree.nodes; these serve
	// listings, walks and the parent's Stat.
	parent     *node
	prev, next *node // siblings
	more       *rare // nil while it would be what rare gives then

	owner int64 // as stored, see kindOf
	czxid int64 // transaction that made it
	ctime int64 // wall clock of czxid, ms
}

// rare is the part of a node that most nodes do without: they never have children,
// and keep the data and the permissions that they were made with.
type rare struct {
	first, last *node
	pzxid       int64 // transaction that last made or deleted a child
	mzxid       int64 // transaction that last set the data
	mtime       int64 // wall clock of mzxid, ms
	// What requests ask of many nodes at once is counted as they come and go.
	belowBytes int64 // of the data of all nodes below this one
	nameBytes  int64 // of the children's names
	below      int32 // how many nodes are below this one
	children   int32 // length of the list
	creates    int32 // Java's stored cversion: how many children were ever created
	version    int32 // of the data
	aversion   int32 // of the list of permissions
	hears      bool  // there may be a recursive watch on the path
	limited    bool  // there may be a quota for the path
}

// rare is a copy of the node's, or what a new node has.
func (n *node) rare() rare {
	if n.more == nil {
		return rare{pzxid: n.czxid, mzxid: n.czxid, mtime: n.ctime}
	}
	return *n.more
}

// own is the node's rare part, to be changed.
func (n *node) own() *rare {
	if n.more == nil {
		r := n.rare()
		n.more = &r
	}
	return n.more
}

// setText gives the node a path and data; nil is Java's null. Both are copied: the
// path may be a part of the text that was there before, which stays as it is for
// those who refer to it, and is to go with the last of them.
func (n *node) setText(path string, data []byte) {
	n.cut = int32(len(path))
	if data == nil {
		n.cut = ^n.cut
	}
	var b strings.Builder
	b.Grow(len(path) + len(data))
	b.WriteString(path)
	b.Write(data)
	n.text = b.String()
}

// pathLen is how long the path is.
func (n *node) pathLen() int {
	if n.cut < 0 {
		return int(^n.cut)
	}
	return int(n.cut)
}

// path is the node's path. It shares the node's memory.
func (n *node) path() string { return n.text[:n.pathLen()] }

// data is the node's data, "" where it is null. It shares the node's memory.
func (n *node) data() string { return n.text[n.pathLen():] }

// null is whether the node has no data, which is not the same as empty data.
func (n *node) null() bool { return n.cut < 0 }

// name is the node's name within its parent. It shares the node's memory.
func (n *node) name() string {
	path := n.path()
	return path[strings.LastIndexByte(path, '/')+1:]
}

// nameLen is how long the name is of a node that has a parent, at less cost than name.
func (n *node) nameLen() int64 {
	if p := n.parent; p.parent != nil {
		return int64(n.pathLen() - p.pathLen() - 1)
	}
	return int64(n.pathLen() - 1)
}

// stat is the node as clients see it: cversion counts creates and deletes, and
// the owner of containers and TTL nodes is hidden (DataNode.copyStat).
func (n *node) stat() wire.Stat {
	s := wire.Stat{
		Czxid: n.czxid, Mzxid: n.czxid, Pzxid: n.czxid, Ctime: n.ctime, Mtime: n.ctime,
		DataLength: int32(len(n.data())),
	}
	if r := n.more; r != nil {
		s.Mzxid, s.Mtime, s.Pzxid, s.NumChildren = r.mzxid, r.mtime, r.pzxid, r.children
		s.Version, s.Cversion, s.Aversion = r.version, r.creates*2-r.children, r.aversion
	}
	if kindOf(n.owner) == ephemeral {
		s.EphemeralOwner = n.owner
	}
	return s
}

// attach makes n, which has no children, the last child of p.
func (p *node) attach(n *node) {
	r := p.own()
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

// countAbove counts nodes and bytes of data into everything above n. The depth of a
// path is bounded, see maxDepth.
func (n *node) countAbove(nodes int32, bytes int64) {
	for p := n.parent; p != nil; p = p.parent {
		p.more.below += nodes
		p.more.belowBytes += bytes
	}
}

// detach takes n out of its parent's children. The parent's create counter stays:
// sequence numbers never come twice.
func (n *node) detach() {
	r := n.parent.more
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

// walk calls f for n and everything below it, parents first, until f says no.
// It holds no stack: paths may be deep.
func (n *node) walk(f func(*node) bool) {
	at := n
	for f(at) {
		if first := at.rare().first; first != nil {
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

// size is what the node counts for in the approximate size of all data, as in
// Java: its path and its data.
func (n *node) size() int64 {
	return int64(len(n.text))
}
