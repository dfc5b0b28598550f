package tree

import (
	"math"

	"github.com/zklock/zklock/internal/wire"
)

// prep checks writes against the state and turns them into transactions. Within
// a multi it sees the operations before as done, without anything being done.
type prep struct {
	t *Tree
	c *conn
	// over is what earlier operations of a multi leave behind, by path; nil
	// outside a multi, where there is nothing earlier.
	over map[string]view
	// subtrees is for quotaFor; nil outside a multi.
	subtrees map[string]string
	// expanded is how many bytes the identities take that stand for "auth" in the
	// lists of this request.
	expanded int
}

// view is of a node what a check needs. It is a copy: changing one changes what
// later operations see, and never the node.
type view struct {
	gone     bool
	version  int32
	aversion int32
	creates  int32
	children int32
	length   int // of the data
	owner    int64
	acl      *aclSet
}

// find returns the node at path as it will be when its turn comes. Paths are
// texts of requests: they may be invalid, and then have no node. The empty text
// is the root, which is what the parent of "/a" comes out as.
func (p *prep) find(path string) (view, bool) {
	if path == "" {
		path = rootPath
	}
	if v, ok := p.over[path]; ok {
		return v, !v.gone
	}
	n := p.t.nodes.get(path)
	if n == nil {
		return view{}, false
	}
	v := view{length: len(n.data()), owner: n.owner, acl: p.t.acls.of(n)}
	if r := n.more; r != nil {
		v.version, v.aversion, v.creates, v.children = r.version, r.aversion, r.creates, r.children
	}
	return v, true
}

// change notes what an operation does, for those behind it. Outside a multi the
// note would be for nobody.
func (p *prep) change(path string, v view) {
	if p.over == nil {
		return
	}
	if path == "" {
		path = rootPath
	}
	p.over[path] = v
}

// may reports whether the requester has the permission on the node.
func (p *prep) may(v view, perm wire.Perm) bool {
	return p.t.may(p.c, v.acl, perm)
}

// nextVersion is the version after current, if want allows it; -1 allows all.
// It skips -1, which a client could never ask for again (ZOOKEEPER-4743).
func nextVersion(current, want int32) (int32, wire.ErrCode) {
	if want != -1 && want != current {
		return 0, wire.ErrBadVersion
	}
	switch current {
	case math.MaxInt32:
		return math.MinInt32, wire.ErrOK
	case -2, -1:
		return 0, wire.ErrOK
	}
	return current + 1, wire.ErrOK
}
