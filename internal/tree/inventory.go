package tree

import (
	"slices"
	"strings"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// getEphemerals lists the session's own ephemeral nodes whose paths begin with
// a text; a blank one, or the root, means all. The text is no path: "/a" also
// finds "/ab". No permission is asked for: a session knows what it made.
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
	paths := make([]string, 0, len(c.session.ephemerals))
	for n := range c.session.ephemerals {
		if strings.HasPrefix(n.path(), prefix) {
			paths = append(paths, n.path())
		}
	}
	slices.Sort(paths)
	return &wire.GetEphemeralsResponse{Ephemerals: paths}, wire.ErrOK
}

// allChildrenNumber counts everything below a node. READ on the node itself is
// enough, as in Java. It takes time in proportion to what it counts, except at
// the root, where the answer is known.
func (t *Tree) allChildrenNumber(c *conn, r *jute.Reader) (wire.Record, wire.ErrCode) {
	var q wire.GetAllChildrenNumberRequest
	if q.Decode(r); r.Err() != nil {
		return nil, wire.ErrMarshalling
	}
	n, err := t.readable(c, q.Path, wire.PermRead)
	if err != wire.ErrOK {
		return nil, err
	}
	total := int32(-1)
	switch {
	case n == t.root:
		total += int32(t.nodes.len())
		if q.Path == "" {
			// Java counts the paths that begin with "/", the root's among them.
			total++
		}
	default:
		n.walk(func(*node) bool { total++; return true })
	}
	return &wire.GetAllChildrenNumberResponse{TotalNumber: total}, wire.ErrOK
}
