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
type node struct {
	path string
	data []byte // never written to; nil is Java's null
	acl  *aclSet

	// The place in the tree. Lookups go by path, through Tree.nodes; these serve
	// listings, walks and the parent's Stat.
	parent     *node
	prev, next *node   // siblings
	kin        *family // nil while it would be what family gives then

	owner        int64 // as stored, see kindOf
	czxid, mzxid int64 // transactions that made it and last set its data
	ctime, mtime int64 // wall clock of czxid and mzxid, ms
	version      int32
}

// family is the part of a node that most nodes do without, as they never have
// children: it is a fifth of their memory.
type family struct {
	first, last *node
	pzxid       int64 // transaction that last made or deleted a child
	children    int32 // length of the list
	creates     int32 // Java's stored cversion: how many children were ever created
	aversion    int32 // of the list of permissions, which hardly ever changes
}

// family is a copy of the node's, or what a new node has.
func (n *node) family() family {
	if n.kin == nil {
		return family{pzxid: n.czxid}
	}
	return *n.kin
}

// own is the node's family, to be changed.
func (n *node) own() *family {
	if n.kin == nil {
		f := n.family()
		n.kin = &f
	}
	return n.kin
}

// name is the node's name within its parent. It shares the path's memory.
func (n *node) name() string {
	return n.path[strings.LastIndexByte(n.path, '/')+1:]
}

// stat is the node as clients see it: cversion counts creates and deletes, and
// the owner of containers and TTL nodes is hidden (DataNode.copyStat).
func (n *node) stat() wire.Stat {
	f := n.family()
	s := wire.Stat{
		Czxid: n.czxid, Mzxid: n.mzxid, Ctime: n.ctime, Mtime: n.mtime,
		Version: n.version, Cversion: f.creates*2 - f.children, Aversion: f.aversion,
		DataLength: int32(len(n.data)), NumChildren: f.children, Pzxid: f.pzxid,
	}
	if kindOf(n.owner) == ephemeral {
		s.EphemeralOwner = n.owner
	}
	return s
}

// attach makes n the last child of p.
func (p *node) attach(n *node) {
	f := p.own()
	n.parent, n.prev = p, f.last
	if f.last != nil {
		f.last.next = n
	} else {
		f.first = n
	}
	f.last = n
	f.children++
}

// detach takes n out of its parent's children. The parent's create counter stays:
// sequence numbers never come twice.
func (n *node) detach() {
	f := n.parent.kin
	if n.prev != nil {
		n.prev.next = n.next
	} else {
		f.first = n.next
	}
	if n.next != nil {
		n.next.prev = n.prev
	} else {
		f.last = n.prev
	}
	n.parent, n.prev, n.next = nil, nil, nil
	f.children--
}

// walk calls f for n and everything below it, parents first, until f says no.
// It holds no stack: paths may be deep.
func (n *node) walk(f func(*node) bool) {
	at := n
	for f(at) {
		if first := at.family().first; first != nil {
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

// childNames lists the children in the order of creation.
func (n *node) childNames() []string {
	f := n.family()
	names := make([]string, 0, f.children)
	for c := f.first; c != nil; c = c.next {
		names = append(names, c.name())
	}
	return names
}

// size is what the node counts for in the approximate size of all data, as in
// Java: its path and its data.
func (n *node) size() int64 {
	return int64(len(n.path)) + int64(len(n.data))
}
