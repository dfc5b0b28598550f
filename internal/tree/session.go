package tree

import (
	"cmp"
	"slices"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// passwordLen is how long the password of a session is, in bytes.
const passwordLen = 16

// session is one client's session. It lives on without a connection until its
// time is over.
type session struct {
	id       int64
	timeout  int32 // ms, as negotiated last
	index    int32 // place in the expiry heap, -1 outside
	password [passwordLen]byte
	share    Share // for whose share it counts, see shares

	conn  *conn  // nil while no client is connected
	owned *owned // made with the first ephemeral node

	// The clock: when it ends unless it is heard, and its entry in the heap.
	deadline time.Duration // last heard plus timeout
	queued   time.Duration // where the expiry heap has it, never later than deadline
}

// owned is what most sessions do without: ephemeral nodes, and an end that takes
// more than one transaction.
type owned struct {
	nodeList

	// ending is set once the session has begun to end: no client can use it.
	ending    bool
	remaining []*node // what the backlog has not deleted yet, some gone already
	closer    *conn   // waits for the answer to its request to end the session
	closeXid  int32   // of that request
}

// own is what the session has of that, to be changed.
func (s *session) own() *owned {
	if s.owned == nil {
		s.owned = new(owned)
	}
	return s.owned
}

// nodes is the session's ephemeral nodes, not to be changed.
func (s *session) nodes() nodeList {
	if s.owned == nil {
		return nodeList{}
	}
	return s.owned.nodeList
}

// ending reports whether the session has begun to end.
func (s *session) ending() bool { return s.owned != nil && s.owned.ending }

// nextSessionID gives an id. Ephemeral nodes are known by their session's id, so
// one that came twice would give a stranger another's locks. It is higher than
// every one before, also those of earlier lives of the server whose records are
// lost: it starts from the wall clock in milliseconds as in Java
// (SessionTrackerImpl.initializeNextSessionId).
func (t *Tree) nextSessionID(wall int64) int64 {
	const clockBits, countBits = 40, 16
	base := int64(t.cfg.ServerID)<<(clockBits+countBits) | (wall&(1<<clockBits-1))<<countBits
	return max(base, t.lastSession+1)
}

// addSession puts a session in; its clock starts when it is first touched, by the
// connection it was made for, or after a restart by StartClocks.
func (t *Tree) addSession(id int64, timeout int32, password []byte) *session {
	s := &session{id: id, timeout: timeout, index: -1}
	copy(s.password[:], password)
	t.sessions[id] = s
	t.lastSession = max(t.lastSession, id)
	return s
}

// touch notes that the session's client was heard.
func (t *Tree) touch(s *session, now Now) {
	if s.ending() || t.readOnly && !t.local(s) {
		return // it ends whatever its client says, or can't end
	}
	s.deadline = now.Mono + time.Duration(s.timeout)*time.Millisecond
	switch {
	case s.index < 0:
		s.queued = s.deadline
		t.expiry.push(s)
	case s.deadline < s.queued:
		s.queued = s.deadline
		t.expiry.fix(int(s.index))
	}
	// A later deadline waits until the earlier one comes up: most sessions are
	// heard often between two looks.
}

// Heard notes that something came from a connection's client that has to wait for
// Request: its session must not end for that. As with Java, which notes it when a
// request is read (ZooKeeperServer.submitRequestNow). A connection that the Tree
// does not know is not an error.
func (t *Tree) Heard(id ConnID, now Now) {
	if c, ok := t.conns[id]; ok {
		t.touch(c.session, now)
	}
}

// removeSession deletes the session and everything that ends with it, as part
// of the transaction zxid.
func (t *Tree) removeSession(s *session, zxid int64, out *Out) {
	for _, n := range s.ownedNodes() {
		t.removeNode(n, zxid, out)
	}
	t.unclock(s)
	t.sessionShares.add(s.share, -1)
	delete(t.sessions, s.id)
	delete(t.locals, s.id)
}

// unclock takes a session out of the expiry heap.
func (t *Tree) unclock(s *session) {
	if s.index >= 0 {
		t.expiry.remove(int(s.index))
	}
}

// ownedNodes lists the session's ephemeral nodes, oldest first, and by path those
// of one multi. Java's order is that of a hash table.
func (s *session) ownedNodes() []*node {
	list := s.nodes()
	return slices.SortedFunc(list.all(), byCreation)
}

// byCreation orders nodes by the transactions that made them, and those of one by
// their paths.
func byCreation(a, b *node) int {
	if c := cmp.Compare(a.czxid, b.czxid); c != 0 {
		return c
	}
	return cmp.Compare(a.path(), b.path())
}

// endSession closes the session, and reports whether that is done: the end of one
// with many nodes is left to the backlog. Otherwise it is one transaction for the
// session and all its nodes. The record has no list of the nodes: at its place among
// the records they are the same again.
func (t *Tree) endSession(s *session, now Now, out *Out) bool {
	switch {
	case t.local(s):
		t.removeSession(s, t.zxid, out) // it owns nothing
	case !t.endsAtOnce(s):
		t.beginEnd(s, now, out)
		return false
	default:
		t.commit(&txn{op: wire.OpCloseSession, session: s.id}, now, out)
	}
	return true
}
