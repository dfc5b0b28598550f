package tree

import (
	"io"
	"slices"

	"github.com/zklock/zklock/internal/jute"
)

// A snapshot begins with a mark and the version of the format, which must be incremented
// when the layout below changes. The version is endSessionVersion if a session is ending.
// There is no checksum, because the log that stores snapshots has one.
const (
	snapshotMark    = "zktree\x00"
	snapshotVersion = 1
)

// snapshotPart is how many bytes WriteSnapshot collects before it writes, and how many
// Restore reads at once.
const snapshotPart = 256 << 10

// AppendSnapshot appends the complete durable state to b: nodes, sessions, and the
// last transaction id, without connections and watches. Equal states give equal
// bytes. Later changes of the Tree do not affect the result.
func (t *Tree) AppendSnapshot(b []byte) []byte {
	return t.encode(b, func(b []byte) ([]byte, bool) { return b, true })
}

// WriteSnapshot writes what AppendSnapshot appends, in parts, so that its memory does
// not grow with the state. It stops at an error, which is w's.
func (t *Tree) WriteSnapshot(w io.Writer) error {
	var err error
	rest := t.encode(nil, func(b []byte) ([]byte, bool) {
		if len(b) < snapshotPart {
			return b, true
		}
		_, err = w.Write(b)
		return b[:0], err == nil
	})
	if err == nil {
		_, err = w.Write(rest)
	}
	return err
}

// encode appends the state to b. After each session and node, part may consume the
// bytes and return an empty buffer, or return false to stop.
func (t *Tree) encode(b []byte, part func([]byte) (rest []byte, more bool)) []byte {
	// Sessions come first, because the owner of an ephemeral node must exist.
	sessions, more := t.sessionList(), true
	version := byte(snapshotVersion)
	if slices.ContainsFunc(sessions, (*session).ending) {
		version = endSessionVersion
	}
	b = append(b, snapshotMark...)
	b = append(b, version)
	b = jute.AppendInt64(b, t.zxid)
	b = jute.AppendInt64(b, t.lastSession)
	b = jute.AppendBool(b, t.fresh)
	b = jute.AppendVectorLen(b, len(sessions), false)
	for _, s := range sessions {
		b = jute.AppendInt64(b, s.id)
		timeout := s.timeout
		if s.ending() {
			timeout = -timeout // a live session has a timeout above zero
		}
		b = jute.AppendInt32(b, timeout)
		if b, more = part(append(b, s.password[:]...)); !more {
			return b
		}
	}
	// Each access control list is written where it first occurs. After that, it is
	// identified by its number.
	acls := make(map[*aclSet]int32, len(t.acls.byKey))
	b = jute.AppendVectorLen(b, t.nodes.len(), false)
	t.root.walk(func(n *node) bool {
		b, more = part(appendNode(b, n, t.acls.of(n), acls))
		return more
	})
	return b
}

// appendNode appends one node. Its number of children follows from the nodes, and its
// kind from its owner.
func appendNode(b []byte, n *node, acl *aclSet, acls map[*aclSet]int32) []byte {
	b = jute.AppendString(b, n.path())
	if n.null() {
		b = jute.AppendBuffer(b, nil)
	} else {
		b = jute.AppendString(b, n.data())
	}
	number, known := acls[acl]
	if !known {
		number = int32(len(acls))
		acls[acl] = number
	}
	b = jute.AppendInt32(b, number)
	if !known {
		b = appendACL(b, acl.list)
	}
	r := n.extraOrNew()
	b = jute.AppendInt32(b, r.version)
	b = jute.AppendInt32(b, r.aversion)
	b = jute.AppendInt32(b, r.creates)
	b = jute.AppendInt64(b, n.owner)
	b = jute.AppendInt64(b, n.czxid)
	b = jute.AppendInt64(b, r.mzxid)
	b = jute.AppendInt64(b, r.pzxid)
	b = jute.AppendInt64(b, n.ctime)
	return jute.AppendInt64(b, r.mtime)
}
