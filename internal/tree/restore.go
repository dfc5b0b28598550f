package tree

import (
	"errors"
	"fmt"
	"io"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// sessionSize is the size of a session in a snapshot, and minNodeSize the minimum
// size of a node. They bound the counts.
const (
	sessionSize = 8 + 4 + passwordLen
	minNodeSize = 3*4 + 3*4 + 6*8
)

// Restore replaces the durable state by a snapshot that AppendSnapshot wrote, the next
// size bytes of src. There must be no connections. Restore reads the snapshot in parts,
// and checks everything in it. Errors wrap [ErrCorrupt], or are src's; after an error
// the Tree must not be used.
func (t *Tree) Restore(src io.Reader, size int64) error {
	const head = int64(len(snapshotMark) + 1)
	if size < head {
		return fmt.Errorf("%w: not a snapshot", ErrCorrupt)
	}
	b := make([]byte, min(size, snapshotPart))
	if _, err := io.ReadFull(src, b[:head]); err != nil {
		return err
	}
	if string(b[:head-1]) != snapshotMark {
		return fmt.Errorf("%w: not a snapshot", ErrCorrupt)
	}
	if err := checkVersion("snapshot", b[head-1], endSessionVersion); err != nil {
		return err
	}
	// An error leaves a Tree that is neither the old nor the new one, so it must not
	// be used.
	t.reset()
	r := jute.NewStreamReader(src, size-head, b)
	t.zxid, t.lastSession, t.fresh = r.Int64(), r.Int64(), r.Bool()
	t.restoreSessions(r)
	t.restoreNodes(r)
	err := r.Finish()
	if errors.Is(err, jute.ErrMalformed) {
		return fmt.Errorf("%w: snapshot: %w", ErrCorrupt, err)
	}
	return err
}

// restoreSessions reads the sessions. They do not expire before StartClocks.
func (t *Tree) restoreSessions(r *jute.Reader) {
	last := t.lastSession
	for range r.VectorLen(sessionSize) {
		id, timeout := r.Int64(), r.Int32()
		var password [passwordLen]byte
		for i := 0; i < passwordLen; i += 8 {
			copy(password[i:], jute.AppendInt64(nil, r.Int64()))
		}
		ending := timeout < 0
		if ending {
			timeout = -timeout
		}
		x := txn{op: wire.OpCreateSession, session: id, timeout: timeout, data: password[:]}
		if what := t.conflict(&x); what != "" {
			r.Failf("%s", what)
		} else if id > last {
			r.Failf("session above the last one")
		}
		if r.Err() != nil {
			return
		}
		s := t.addSession(id, timeout, password[:])
		if ending {
			s.ensureOwned().ending = true
		}
	}
}

// restoreNodes reads the nodes, including the tree's own four. Parents come before
// their children, and siblings in their order, so each node can be attached when it
// is read.
func (t *Tree) restoreNodes(r *jute.Reader) {
	var acls []*aclSet
	for range r.VectorLen(minNodeSize) {
		n := t.restoreNode(r, &acls)
		if r.Err() != nil {
			return
		}
		t.nodes.put(n)
		t.dataSize += n.size()
		t.index(n)
	}
	for _, s := range acls {
		t.acls.release(s) // the reference held while reading
	}
	// The nodes were read in the order of the tree.
	t.containers.sort()
	t.ttls.sort()
	for _, s := range t.sessions {
		if s.owned != nil {
			s.owned.sort()
		}
	}
	for _, path := range []string{rootPath, procPath, quotaPath, configPath} {
		if r.Err() == nil && t.nodes.get(path) == nil {
			r.Failf("node %s is missing", path)
		}
	}
}

// restoreNode reads one node, checks it, and attaches it.
func (t *Tree) restoreNode(r *jute.Reader, acls *[]*aclSet) *node {
	n := new(node)
	path := r.String()
	n.setText(path, r.Buffer())
	acl := t.restoreACL(r, acls)
	var more nodeExtra
	more.version, more.aversion, more.creates = r.Int32(), r.Int32(), r.Int32()
	n.owner = r.Int64()
	n.czxid, more.mzxid, more.pzxid = r.Int64(), r.Int64(), r.Int64()
	n.ctime, more.mtime = r.Int64(), r.Int64()
	if more != n.extraOrNew() {
		n.extra = &more
	}
	if r.Err() != nil {
		return nil
	}
	n.acl = acl.number
	if t.root == nil {
		if path != rootPath || n.owner != 0 {
			r.Failf("first node is not the root")
			return nil
		}
		acl.refs++
		t.root = n
		return n
	}
	if what := t.nodeConflict(n); what != "" {
		r.Failf("node: %s", what)
		return nil
	}
	acl.refs++
	parentPath, _ := parentOf(path)
	t.lookup(parentPath).attach(n)
	return n
}

// nodeConflict returns why a node cannot be part of the state, or "". It requires
// what a create requires, except for the tree's own nodes, which no request can
// create.
func (t *Tree) nodeConflict(n *node) string {
	path := n.path()
	if isSpecial(path) && path != rootPath {
		parentPath, _ := parentOf(path)
		if t.nodes.get(path) != nil || t.lookup(parentPath) == nil || n.owner != 0 {
			return "one of the tree's own is out of place"
		}
		return ""
	}
	return t.createConflict(&txn{path: path, owner: n.owner})
}

// restoreACL reads a list's number, and the list if the number is new. The numbers
// count up from zero. A number above the next one is an error, and no memory is
// allocated for a list before it is read.
func (t *Tree) restoreACL(r *jute.Reader, acls *[]*aclSet) *aclSet {
	number := r.Int32()
	if r.Err() != nil || number < 0 || int(number) > len(*acls) {
		r.Failf("list of permissions %d of %d", number, len(*acls))
		return nil
	}
	if int(number) == len(*acls) {
		set := t.acls.intern(decodeACL(r))
		*acls = append(*acls, set)
	}
	return (*acls)[number]
}
