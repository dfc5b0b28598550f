package tree

import (
	"cmp"
	"slices"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// passwordLen is the length of a session password, in bytes.
const passwordLen = 16

// session is the session of one client. It lives without a connection until its
// timeout is over.
type session struct {
	id       int64
	timeout  int32 // ms, as last negotiated
	index    int32 // index in the expiry heap, -1 if it is not there
	password [passwordLen]byte
	share    Share // the address that it counts for, see shares
	// class is the number of bits of the number of sessions that its address had when this one
	// was counted. If more sessions are due than one call can end, those of a lower class end
	// first, so that the locks of one client do not wait for a hundred thousand sessions of
	// another address. Of the classes up to n, an address has less than 2^n sessions. Sessions
	// without a known address, such as those not resumed since a restart, have class 0.
	class uint8

	conn  *conn  // nil while no client is connected
	owned *owned // created with the first ephemeral node

	// The expiry: the deadline, and the entry in the heap.
	deadline time.Duration // time of the last message plus timeout
	heapTime time.Duration // key in the expiry heap, never later than deadline
}

// owned holds the fields that most sessions do not need: ephemeral nodes, and an end
// that takes several transactions.
type owned struct {
	nodeList

	// ending: the session has begun to end, and no client can use it.
	ending    bool
	remaining *nodeCursor // visits the nodes that are left for the backlog
	closer    *conn       // the connection that requested the end and waits for the answer
	closeXid  int32       // xid of that request
}

// ensureOwned returns the owned fields for modification.
func (s *session) ensureOwned() *owned {
	if s.owned == nil {
		s.owned = new(owned)
	}
	return s.owned
}

// nodes returns the session's ephemeral nodes, which must not be modified.
func (s *session) nodes() *nodeList {
	if s.owned == nil {
		return new(nodeList)
	}
	return &s.owned.nodeList
}

// ending reports whether the session has begun to end.
func (s *session) ending() bool { return s.owned != nil && s.owned.ending }

// nextSessionID returns a new session ID. Ephemeral nodes are identified by their
// session's ID, so a repeated ID would give one client the locks of another. The ID
// is higher than every previous one, including those of earlier runs whose records
// are lost: it starts from the wall clock in milliseconds, as in Java
// (SessionTrackerImpl.initializeNextSessionId).
func (t *Tree) nextSessionID(wall int64) int64 {
	const clockBits, countBits = 40, 16
	base := int64(t.cfg.ServerID)<<(clockBits+countBits) | (wall&(1<<clockBits-1))<<countBits
	return max(base, t.lastSession+1)
}

// addSession adds a session. Its expiry starts at the first touch: by the connection
// that created it, or by StartClocks after a restart.
func (t *Tree) addSession(id int64, timeout int32, password []byte) *session {
	s := &session{id: id, timeout: timeout, index: -1}
	copy(s.password[:], password)
	t.sessions[id] = s
	t.lastSession = max(t.lastSession, id)
	return s
}

// touch records that the server has heard from the session's client.
func (t *Tree) touch(s *session, now Now) {
	if s.ending() || t.readOnly && !t.isLocal(s) {
		return // it ends in any case, or cannot end
	}
	s.deadline = now.Mono + time.Duration(s.timeout)*time.Millisecond
	switch {
	case s.index < 0:
		s.heapTime = s.deadline
		t.expiry[s.class].push(s)
	case s.deadline < s.heapTime:
		s.heapTime = s.deadline
		t.expiry[s.class].fix(int(s.index))
	}
	// A later deadline is not moved in the heap until the earlier key comes up,
	// because most sessions are touched often in between.
}

// KeepAlive records that data has arrived from a connection's client and waits for
// Request. The session must not expire because of that wait. Java also records it
// when a request is read (ZooKeeperServer.submitRequestNow). An unknown connection is
// not an error.
func (t *Tree) KeepAlive(id ConnID, now Now) {
	if c, ok := t.conns[id]; ok {
		t.touch(c.session, now)
	}
}

// removeSession deletes the session and its ephemeral nodes, as part of the
// transaction zxid.
func (t *Tree) removeSession(s *session, zxid int64, out *Out) {
	for _, n := range s.ownedNodes() {
		t.removeNode(n, zxid, out)
	}
	t.stopExpiry(s)
	t.sessionShares.add(s.share, -1)
	delete(t.sessions, s.id)
	delete(t.localSessions, s.id)
}

// stopExpiry removes a session from the expiry heap.
func (t *Tree) stopExpiry(s *session) {
	if s.index >= 0 {
		t.expiry[s.class].remove(int(s.index))
	}
}

// ownedNodes returns the session's ephemeral nodes, oldest first, and those of one
// multi by path. Java uses the order of a hash table.
func (s *session) ownedNodes() []*node {
	list := s.nodes()
	return slices.SortedFunc(list.all(), byCreation)
}

// byCreation compares nodes by their creating transactions, then by path.
func byCreation(a, b *node) int {
	if c := cmp.Compare(a.czxid, b.czxid); c != 0 {
		return c
	}
	return cmp.Compare(a.path(), b.path())
}

// endSession ends the session, and reports whether that is complete. The end of a
// session with many nodes is left to the backlog. Otherwise it is one transaction for
// the session and all its nodes. The record does not list the nodes, because a replay
// finds the same ones at this point.
func (t *Tree) endSession(s *session, now Now, out *Out) bool {
	switch {
	case t.isLocal(s):
		t.removeSession(s, t.zxid, out) // it has no nodes
	case !t.endsInOneTxn(s):
		t.startEnd(s, now, out)
		return false
	default:
		t.commit(&txn{op: wire.OpCloseSession, session: s.id}, now, out)
	}
	return true
}
