package tree

import (
	"github.com/zklock/zklock/internal/jute"
)

// snapshotMagic begins a snapshot; its last byte is the version of the format,
// which a change of the layout below must raise. There is no checksum: the log
// that stores it has one.
const snapshotMagic = "zktree\x00\x01"

// AppendSnapshot appends the whole durable state to b: nodes, sessions, the last
// transaction id. Connections and watches are no part of it. Equal states give
// equal bytes. Later changes of the Tree don't touch the result.
func (t *Tree) AppendSnapshot(b []byte) []byte {
	b = append(b, snapshotMagic...)
	b = jute.AppendInt64(b, t.zxid)
	b = jute.AppendInt64(b, t.lastSession)
	b = jute.AppendBool(b, t.fresh)
	// Sessions go first: an ephemeral node needs its owner to be there.
	sessions := t.sessionList()
	b = jute.AppendVectorLen(b, len(sessions), false)
	for _, s := range sessions {
		b = jute.AppendInt64(b, s.id)
		b = jute.AppendInt32(b, s.timeout)
		b = append(b, s.password[:]...)
	}
	// Each list of permissions is written where it is first needed; from then
	// on it goes by its number.
	acls := make(map[*aclSet]int32, len(t.acls.byKey))
	b = jute.AppendVectorLen(b, len(t.nodes), false)
	t.root.walk(func(n *node) bool {
		b = appendNode(b, n, acls)
		return true
	})
	return b
}

// appendNode appends one node; its number of children follows from the nodes
// that come, and whether it is a container or has a time to live from its owner.
func appendNode(b []byte, n *node, acls map[*aclSet]int32) []byte {
	b = jute.AppendString(b, n.path)
	b = jute.AppendBuffer(b, n.data)
	number, known := acls[n.acl]
	if !known {
		number = int32(len(acls))
		acls[n.acl] = number
	}
	b = jute.AppendInt32(b, number)
	if !known {
		b = appendACL(b, n.acl.list)
	}
	b = jute.AppendInt32(b, n.version)
	b = jute.AppendInt32(b, n.aversion)
	b = jute.AppendInt32(b, n.creates)
	b = jute.AppendInt64(b, n.owner)
	b = jute.AppendInt64(b, n.czxid)
	b = jute.AppendInt64(b, n.mzxid)
	b = jute.AppendInt64(b, n.pzxid)
	b = jute.AppendInt64(b, n.ctime)
	return jute.AppendInt64(b, n.mtime)
}
