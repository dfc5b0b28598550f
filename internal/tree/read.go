package tree

import (
	"strings"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// readable finds the node at path if c has one of the permissions perm on it. As
// in Java a missing node is reported before a permission is asked for, since a
// node's permissions are its own: whether a node exists is no secret.
func (t *Tree) readable(c *conn, path string, perm wire.Perm) (*node, wire.ErrCode) {
	n := t.lookup(path)
	if n == nil {
		return nil, wire.ErrNoNode
	}
	if !t.may(c, t.acls.of(n), perm) {
		return nil, wire.ErrNoAuth
	}
	return n, wire.ErrOK
}

// exists answers with the Stat. Its watch is set on a node that is missing too:
// it fires when the node comes. Up to 3.8.0 it needed no permission; later
// servers want READ, as the size and the times of a node tell something.
func (t *Tree) exists(c *conn, r *jute.Reader) (wire.Record, wire.ErrCode) {
	var q wire.ExistsRequest
	if q.Decode(r); r.Err() != nil {
		return nil, wire.ErrMarshalling
	}
	if strings.IndexByte(q.Path, 0) >= 0 {
		return nil, wire.ErrBadArguments
	}
	n := t.lookup(q.Path)
	if n != nil && !t.cfg.Compat38 && !t.may(c, t.acls.of(n), wire.PermRead) {
		return nil, wire.ErrNoAuth
	}
	if q.Watch {
		t.addWatch(q.Path, c, dataOnce)
	}
	if n == nil {
		return nil, wire.ErrNoNode
	}
	return &wire.ExistsResponse{Stat: n.stat()}, wire.ErrOK
}

// getData answers with data and Stat; a node that is missing gets no watch.
func (t *Tree) getData(c *conn, r *jute.Reader) (wire.Record, wire.ErrCode) {
	var q wire.GetDataRequest
	if q.Decode(r); r.Err() != nil {
		return nil, wire.ErrMarshalling
	}
	return t.data(c, &q)
}

// data is getData for one record, alone or in a multiRead. The answer refers to
// the node's own text, which is never written to, only replaced.
func (t *Tree) data(c *conn, q *wire.GetDataRequest) (wire.Record, wire.ErrCode) {
	n, err := t.readable(c, q.Path, wire.PermRead)
	if err != wire.ErrOK {
		return nil, err
	}
	if q.Watch {
		t.addWatch(q.Path, c, dataOnce)
	}
	return &dataResponse{wire.ExistsResponse{Stat: n.stat()}, n.data(), n.null()}, wire.ErrOK
}

// dataResponse is what wire.GetDataResponse is on its way out, with the data as a
// node has it. It is never decoded.
type dataResponse struct {
	wire.ExistsResponse // the Stat behind the data
	data                string
	null                bool
}

// Append implements wire.Record.
func (p *dataResponse) Append(b []byte) []byte {
	if p.null {
		b = jute.AppendBuffer(b, nil)
	} else {
		b = jute.AppendString(b, p.data)
	}
	return p.Stat.Append(b)
}

// getChildren answers with the names of the children.
func (t *Tree) getChildren(c *conn, r *jute.Reader) (wire.Record, wire.ErrCode) {
	var q wire.GetChildrenRequest
	if q.Decode(r); r.Err() != nil {
		return nil, wire.ErrMarshalling
	}
	return t.children(c, &q)
}

// children is getChildren for one record, alone or in a multiRead. The names are
// in the order of creation; Java's come in none, so clients sort for themselves.
func (t *Tree) children(c *conn, q *wire.GetChildrenRequest) (wire.Record, wire.ErrCode) {
	n, err := t.readable(c, q.Path, wire.PermRead)
	if err != wire.ErrOK {
		return nil, err
	}
	if q.Watch {
		t.addWatch(q.Path, c, childOnce)
	}
	return &childrenResponse{of: n}, wire.ErrOK
}

// childrenResponse is what wire.GetChildrenResponse and wire.GetChildren2Response
// are on their way out, with the names as the nodes have them. It is never decoded,
// and written before anything changes.
type childrenResponse struct {
	wire.Empty
	of   *node
	stat bool // the Stat follows
}

// size is how long the response gets. It costs no look at the children.
func (p *childrenResponse) size() int {
	if r := p.of.more; r != nil {
		return 4 + 4*int(r.children) + int(r.nameBytes)
	}
	return 4
}

// Append implements wire.Record.
func (p *childrenResponse) Append(b []byte) []byte {
	if r := p.of.more; r != nil {
		b = jute.AppendVectorLen(b, int(r.children), false)
		for c := r.first; c != nil; c = c.next {
			b = jute.AppendString(b, c.name())
		}
	} else {
		b = jute.AppendVectorLen(b, 0, false)
	}
	if p.stat {
		s := p.of.stat()
		b = s.Append(b)
	}
	return b
}

// getChildren2 answers with the names and the Stat.
func (t *Tree) getChildren2(c *conn, r *jute.Reader) (wire.Record, wire.ErrCode) {
	var q wire.GetChildren2Request
	if q.Decode(r); r.Err() != nil {
		return nil, wire.ErrMarshalling
	}
	n, err := t.readable(c, q.Path, wire.PermRead)
	if err != wire.ErrOK {
		return nil, err
	}
	if q.Watch {
		t.addWatch(q.Path, c, childOnce)
	}
	return &childrenResponse{of: n, stat: true}, wire.ErrOK
}

// getACL answers with the list to who may read or administer the node. Only the
// latter sees the hashes of digests: a hash can be tried against passwords.
func (t *Tree) getACL(c *conn, r *jute.Reader) (wire.Record, wire.ErrCode) {
	var q wire.GetACLRequest
	if q.Decode(r); r.Err() != nil {
		return nil, wire.ErrMarshalling
	}
	n, err := t.readable(c, q.Path, wire.PermRead|wire.PermAdmin)
	if err != wire.ErrOK {
		return nil, err
	}
	list := t.acls.of(n).list
	if !t.may(c, t.acls.of(n), wire.PermAdmin) {
		list = masked(list)
	}
	return &wire.GetACLResponse{ACL: list, Stat: n.stat()}, wire.ErrOK
}

// masked replaces the hashes in a list by an x. The list itself is shared and
// stays as it is.
func masked(list []wire.ACL) []wire.ACL {
	m := make([]wire.ACL, len(list))
	for i, a := range list {
		if user, _, ok := strings.Cut(a.ID, ":"); ok && a.Scheme == schemeDigest {
			a.ID = user + ":x"
		}
		m[i] = a
	}
	return m
}
