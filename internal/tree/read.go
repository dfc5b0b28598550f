package tree

import (
	"strings"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// readable returns the node at path if c has one of the permissions perm on it. As in
// Java, a missing node is reported before permissions are checked, because they
// belong to the node. So the existence of a node is not secret.
func (t *Tree) readable(c *conn, path string, perm wire.Perm) (*node, wire.ErrCode) {
	n := t.lookup(path)
	if n == nil {
		return nil, wire.ErrNoNode
	}
	if !t.may(c, t.acls.of(n), perm) || !t.mayReadUsage(c, path) {
		return nil, wire.ErrNoAuth
	}
	return n, wire.ErrOK
}

// exists answers with the Stat. Its watch is also set on a missing node, and then
// fires when the node is created. It needs READ, because the size and the times of a
// node are information.
func (t *Tree) exists(c *conn, r *jute.Reader) (wire.Record, wire.ErrCode) {
	var q wire.ExistsRequest
	if q.Decode(r); r.Err() != nil {
		return nil, wire.ErrMarshalling
	}
	if strings.IndexByte(q.Path, 0) >= 0 {
		return nil, wire.ErrBadArguments
	}
	n := t.lookup(q.Path)
	if n != nil && (!t.may(c, t.acls.of(n), wire.PermRead) || !t.mayReadUsage(c, q.Path)) {
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

// getData answers with data and Stat. It sets no watch on a missing node.
func (t *Tree) getData(c *conn, r *jute.Reader) (wire.Record, wire.ErrCode) {
	var q wire.GetDataRequest
	if q.Decode(r); r.Err() != nil {
		return nil, wire.ErrMarshalling
	}
	return t.data(c, &q)
}

// data is getData for one record, alone or in a multiRead. The answer refers to the
// node's own text, which is never modified, only replaced.
func (t *Tree) data(c *conn, q *wire.GetDataRequest) (wire.Record, wire.ErrCode) {
	n, err := t.readable(c, q.Path, wire.PermRead)
	if err != wire.ErrOK {
		return nil, err
	}
	resp := &dataResponse{wire.ExistsResponse{Stat: n.stat()}, n.data(), n.null()}
	if q.Watch && t.hasBuffer(resp) {
		t.addWatch(q.Path, c, dataOnce)
	}
	return resp, wire.ErrOK
}

// dataResponse encodes like wire.GetDataResponse, with the data as the node stores
// it. It is never decoded.
type dataResponse struct {
	wire.ExistsResponse // the Stat after the data
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

// children is getChildren for one record, alone or in a multiRead. The names are in
// the order of creation. Java's have no order, so clients sort them.
func (t *Tree) children(c *conn, q *wire.GetChildrenRequest) (wire.Record, wire.ErrCode) {
	n, err := t.readable(c, q.Path, wire.PermRead)
	if err != wire.ErrOK {
		return nil, err
	}
	resp := &childrenResponse{of: n}
	if q.Watch && t.hasBuffer(resp) {
		t.addWatch(q.Path, c, childOnce)
	}
	return resp, wire.ErrOK
}

// childrenResponse encodes like wire.GetChildrenResponse and
// wire.GetChildren2Response, with the names as the nodes store them. It is never
// decoded, and it is encoded before the tree changes.
type childrenResponse struct {
	wire.Empty
	of   *node
	stat bool // the Stat follows
}

// size returns the encoded size. It does not read the children.
func (p *childrenResponse) size() int {
	if r := p.of.extra; r != nil {
		return 4 + 4*int(r.children) + int(r.nameBytes)
	}
	return 4
}

// Append implements wire.Record.
func (p *childrenResponse) Append(b []byte) []byte {
	if r := p.of.extra; r != nil {
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
	resp := &childrenResponse{of: n, stat: true}
	if q.Watch && t.hasBuffer(resp) {
		t.addWatch(q.Path, c, childOnce)
	}
	return resp, wire.ErrOK
}

// getACL answers with the list to clients that may read or administer the node. Only
// the latter get the hashes of digests, because a hash can be used to test passwords.
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
		list = maskHashes(list)
	}
	return &wire.GetACLResponse{ACL: list, Stat: n.stat()}, wire.ErrOK
}

// maskHashes returns the list with "x" in place of hashes. The list itself is shared
// and is not modified.
func maskHashes(list []wire.ACL) []wire.ACL {
	m := make([]wire.ACL, len(list))
	for i, a := range list {
		if user, _, ok := strings.Cut(a.ID, ":"); ok && a.Scheme == schemeDigest {
			a.ID = user + ":x"
		}
		m[i] = a
	}
	return m
}

// getEphemerals lists the session's own ephemeral nodes whose paths begin with a
// prefix. A blank prefix, or the root, means all. The prefix need not be a path: "/a"
// also matches "/ab". No permission is needed, because the session created the nodes.
// A session with more nodes than maxListed is refused, because inspecting all of them
// takes too long. So is a request that would compare too much text. The paths are in
// the order of creation, because sorting long paths takes too long. Java's have no order.
func (t *Tree) getEphemerals(c *conn, r *jute.Reader) (wire.Record, wire.ErrCode) {
	var q wire.GetEphemeralsRequest
	if q.Decode(r); r.Err() != nil {
		return nil, wire.ErrMarshalling
	}
	prefix := q.PrefixPath
	if text := strings.TrimSpace(prefix); text == rootPath {
		prefix = ""
	} else if text == "" {
		prefix = text
	}
	list := c.session.nodes()
	if list.count > maxListed {
		t.counters.RefusedReplies++
		return nil, wire.ErrQuotaExceeded
	}
	t.steps += list.count / lookedPerStep
	paths := make([]string, 0, list.count)
	for n := range list.all() {
		path := n.path()
		if len(path) < len(prefix) {
			continue
		}
		if t.steps += len(prefix) / textPerStep; t.exhausted() {
			t.counters.RefusedReplies++
			return nil, wire.ErrQuotaExceeded
		}
		if strings.HasPrefix(path, prefix) {
			paths = append(paths, path)
		}
	}
	return &wire.GetEphemeralsResponse{Ephemerals: paths}, wire.ErrOK
}

// allChildrenNumber counts the descendants of a node. READ on the node itself is
// sufficient, as in Java.
func (t *Tree) allChildrenNumber(c *conn, r *jute.Reader) (wire.Record, wire.ErrCode) {
	var q wire.GetAllChildrenNumberRequest
	if q.Decode(r); r.Err() != nil {
		return nil, wire.ErrMarshalling
	}
	n, err := t.readable(c, q.Path, wire.PermRead)
	if err != wire.ErrOK {
		return nil, err
	}
	total := n.extraOrNew().below
	if q.Path == "" {
		// Java counts the paths that begin with "/", which includes the root.
		total++
	}
	return &wire.GetAllChildrenNumberResponse{TotalNumber: total}, wire.ErrOK
}
