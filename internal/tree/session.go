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

	conn       *conn              // nil while nobody is connected
	ephemerals map[*node]struct{} // made with the first one

	// The clock: when it ends unless it is heard, and its entry in the heap.
	deadline time.Duration // last heard plus timeout
	queued   time.Duration // where the expiry heap has it, never later than deadline
}

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
	if t.readOnly && !t.local(s) {
		return // it can't end
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
	if s.index >= 0 {
		t.expiry.remove(int(s.index))
	}
	t.sessionShares.add(s.share, -1)
	delete(t.sessions, s.id)
	delete(t.locals, s.id)
}

// ownedNodes lists the session's ephemeral nodes, oldest first, and by path those
// of one multi. Java's order is that of a hash table. The set itself is one too,
// since most sessions have few nodes and most nodes leave one by one.
func (s *session) ownedNodes() []*node {
	list := make([]*node, 0, len(s.ephemerals))
	for n := range s.ephemerals {
		list = append(list, n)
	}
	slices.SortFunc(list, func(a, b *node) int {
		if c := cmp.Compare(a.czxid, b.czxid); c != 0 {
			return c
		}
		return cmp.Compare(a.path(), b.path())
	})
	return list
}

// endSession closes the session in a transaction of its own, one for all its
// nodes, and returns the transaction's id. The record has no list of the nodes:
// at its place among the records they are the same again.
func (t *Tree) endSession(s *session, now Now, out *Out) int64 {
	if t.local(s) {
		t.removeSession(s, t.zxid, out) // it owns nothing
		return t.zxid
	}
	x := txn{op: wire.OpCloseSession, session: s.id}
	return t.commit(&x, now, out)
}
