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
	parent      *node
	first, last *node // children
	prev, next  *node // siblings
	children    int32 // length of the list of children

	version  int32
	aversion int32
	creates  int32 // Java's stored cversion: how many children were ever created

	owner        int64 // as stored, see kindOf
	czxid, mzxid int64 // transactions that made it and last set its data
	pzxid        int64 // transaction that last made or deleted a child
	ctime, mtime int64 // wall clock of czxid and mzxid, ms
}

// name is the node's name within its parent. It shares the path's memory.
func (n *node) name() string {
	return n.path[strings.LastIndexByte(n.path, '/')+1:]
}

// stat is the node as clients see it: cversion counts creates and deletes, and
// the owner of containers and TTL nodes is hidden (DataNode.copyStat).
func (n *node) stat() wire.Stat {
	s := wire.Stat{
		Czxid: n.czxid, Mzxid: n.mzxid, Ctime: n.ctime, Mtime: n.mtime,
		Version: n.version, Cversion: n.creates*2 - n.children, Aversion: n.aversion,
		DataLength: int32(len(n.data)), NumChildren: n.children, Pzxid: n.pzxid,
	}
	if kindOf(n.owner) == ephemeral {
		s.EphemeralOwner = n.owner
	}
	return s
}

// attach makes n the last child of p.
func (p *node) attach(n *node) {
	n.parent, n.prev = p, p.last
	if p.last != nil {
		p.last.next = n
	} else {
		p.first = n
	}
	p.last = n
	p.children++
}

// detach takes n out of its parent's children. The parent's create counter stays:
// sequence numbers never come twice.
func (n *node) detach() {
	p := n.parent
	if n.prev != nil {
		n.prev.next = n.next
	} else {
		p.first = n.next
	}
	if n.next != nil {
		n.next.prev = n.prev
	} else {
		p.last = n.prev
	}
	n.parent, n.prev, n.next = nil, nil, nil
	p.children--
}

// walk calls f for n and everything below it, parents first, until f says no.
// It holds no stack: paths may be deep.
func (n *node) walk(f func(*node) bool) {
	at := n
	for f(at) {
		if at.first != nil {
			at = at.first
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
	names := make([]string, 0, n.children)
	for c := n.first; c != nil; c = c.next {
		names = append(names, c.name())
	}
	return names
}

// size is what the node counts for in the approximate size of all data, as in
// Java: its path and its data.
func (n *node) size() int64 {
	return int64(len(n.path)) + int64(len(n.data))
}
