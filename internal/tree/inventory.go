package tree

import (
	"strings"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// getEphemerals lists the session's own ephemeral nodes whose paths begin with
// a text; a blank one, or the root, means all. The text is no path: "/a" also
// finds "/ab". No permission is asked for: a session knows what it made. A session
// with more nodes than maxListed is refused: to look at all takes too long. The paths
// are in the order of creation, because sorting long paths takes too long; Java's are in
// no order.
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
	if list.live > maxListed {
		t.tallies.RefusedReplies++
		return nil, wire.ErrQuotaExceeded
	}
	paths := make([]string, 0, list.live)
	for n := range list.all() {
		if strings.HasPrefix(n.path(), prefix) {
			paths = append(paths, n.path())
		}
	}
	return &wire.GetEphemeralsResponse{Ephemerals: paths}, wire.ErrOK
}

// allChildrenNumber counts everything below a node. READ on the node itself is
// enough, as in Java.
func (t *Tree) allChildrenNumber(c *conn, r *jute.Reader) (wire.Record, wire.ErrCode) {
	var q wire.GetAllChildrenNumberRequest
	if q.Decode(r); r.Err() != nil {
		return nil, wire.ErrMarshalling
	}
	n, err := t.readable(c, q.Path, wire.PermRead)
	if err != wire.ErrOK {
		return nil, err
	}
	total := n.rare().below
	if q.Path == "" {
		// Java counts the paths that begin with "/", the root's among them.
		total++
	}
	return &wire.GetAllChildrenNumberResponse{TotalNumber: total}, wire.ErrOK
}
