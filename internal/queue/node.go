package queue

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"time"
)

// nodeState is what the core knows about a znode.
type nodeState uint8

const (
	creating  nodeState = iota // its create is in flight
	unknown                    // the answer to its create was lost: it may exist
	alive                      // known to have been created
	deleting                   // its delete is in flight
	searching                  // a read in flight shows whether it exists
	absent                     // certainly gone, or never created
)

// naming is what identifies a znode as this client's own.
type naming uint8

const (
	byGUID  naming = iota // the GUID in its name, which is used for one create only
	byData                // the id in its data, because its name has no room for one
	forever               // only its name; it is persistent: a record
)

// A node is one znode of an acquire.
type node struct {
	parent  string
	prefix  string // the name in the create
	name    string // the created name, with its sequence number
	whole   string // the created path, if it is known
	named   naming
	fixed   bool   // of a node lock: the name has no sequence number
	id      string // for byData
	tried   uint64 // of a fixed node: the connection on which a create was last refused
	missed  int    // of a fixed node: see [maxMissed]
	unsure  bool   // of a fixed node: an earlier create of it had no answer, and may have succeeded
	state   nodeState
	czxid   int64
	version int32 // the latest version whose data are known; see [Core.SetData]
	session int64

	owner    *acquire // nil once it is a pending delete
	position *position

	// doubted is not 0 if the znode may have been deleted without an event, so that it must
	// be checked before a grant. Answers to requests up to this one prove nothing.
	doubted  uint64
	watch    ownWatch
	bound    bool      // the watch ends with the connection
	watchReq uint64    // the request that set the watch; 0 if it was answered by the znode's deletion
	seen     bool      // the answer to that watch's request was that the znode exists
	prover   *position // the position that waits for an answer about it; see [Core.prove]
	wentAt   int64     // the zxid of its delete, if this client deleted it
	late     bool      // its delete waits for the next create to include it
	counted  bool      // its create counts in the backlog
	asked    bool      // an earlier delete or downgrade had no answer, and may still delete it by its name
	due      bool      // its hold was released, and this client has not deleted it: see [Core.missing]

	parting *pendingRelease // of a pending delete: the release that it belongs to
	apart   bool            // its delete is not batched, because the last one was undone
	retryAt time.Duration
	refused bool // the servers refused to delete it
}

func (n *node) path() string {
	if n.whole != "" && n.whole[len(n.parent)+1:] == n.name {
		return n.whole
	}
	return n.parent + "/" + n.name
}

// made records the success of a create whose i-th znode is n. If the answer has a name that
// cannot be the znode's, its name is unknown.
func (n *node) made(r Reply, i int) {
	n.state, n.czxid = alive, r.Czxid
	if i < len(r.Made) && !strings.HasPrefix(path.Base(r.Made[i]), n.prefix) {
		n.state = unknown
		return
	}
	if i < len(r.Made) {
		n.name = path.Base(r.Made[i])
		// The name shares the memory of the path, so keeping the path costs nothing.
		if whole := r.Made[i]; len(whole) == len(n.parent)+1+len(n.name) && strings.HasPrefix(whole, n.parent) {
			n.whole = whole
		}
	}
}

// doubt records that a waiter's znode may be deleted without an event.
func (c *Core) doubt(n *node) {
	if n.owner.phase != held {
		n.doubted = c.lastReq
	}
}

// A pendingRelease is the group of znodes that one release or abandonment deletes.
type pendingRelease struct {
	id     ID
	left   int  // how many znodes may still exist
	report bool // a Released signal is to follow
	told   bool // the signal was sent
	err    error
}

// deleteRetry is the longest pause before the retry of a delete that the server refused,
// for example because of an ACL.
const deleteRetry = 30 * time.Second

// refusedPause returns the pause before a refused request is retried. Refusals cause no
// storm, and once the request is permitted, a successor is granted within a session
// timeout.
func (c *Core) refusedPause() time.Duration {
	return min(max(c.deadline.timeout, retryPause), deleteRetry)
}

// disposeAll deletes znodes of acquires that have ended. Records are deleted before
// entries, because a record without its entry means that a holder crashed.
func (c *Core) disposeAll(now time.Duration, nodes []*node) {
	for _, records := range []bool{true, false} {
		for _, n := range nodes {
			if (n.named == forever) == records {
				c.dispose(now, n)
			}
		}
	}
}

// dispose takes the next step in deleting a pending delete. If a read has found its znode, or the
// servers have refused the read, asOf is when it was sent: the servers may have applied an earlier
// request since then. Otherwise, asOf is the present time.
func (c *Core) dispose(asOf time.Duration, n *node) {
	if !c.connected() {
		return
	}
	switch {
	case n.state == alive && n.asked && asOf < c.unsettledUntil:
		// Another client may get the name once this delete is applied, and an earlier one
		// would delete that client's znode.
		n.state = unknown
		c.retryDelete(n, c.unsettledUntil)
	case n.state == alive, n.state == unknown && n.named == forever:
		n.state = deleting
		// Deletes whose order matters, of records and permits, are not batched: a failure
		// would separate them. Neither are deletes of reusable names: a batch may wait
		// until the name belongs to another znode.
		batchable := !n.apart && n.named == byGUID && n.parting != nil && n.parting.left == 1
		c.send(Request{Kind: Delete, Path: n.path(), Batchable: batchable}, func(now time.Duration, r Reply) { c.deleted(now, n, r) })
	case n.state == unknown && n.fixed:
		c.probeFixed(n)
	case n.state == unknown:
		c.probe(n.parent)
	}
}

// deleted handles the outcome of a delete.
func (c *Core) deleted(now time.Duration, n *node, r Reply) {
	if n.state != deleting {
		return
	}
	if r.Code == OK {
		n.wentAt = r.Zxid
	}
	defer c.proven(now, n)
	switch r.Code {
	case OK:
		c.answered(r)
		c.finish(n, nil)
	case NoNode:
		c.missing(n)
	case SessionOver: // the session change says whether the znode is gone with the session
		n.state = alive
	case Undone:
		n.state, n.apart = alive, true
		c.dispose(now, n)
	case Unknown, NotApplied:
		n.state, n.due = alive, n.due && r.Code == NotApplied
		n.asked = n.asked || r.Code == Unknown && n.named == byData
		n.distrust()
		c.retryDelete(n, now+retryPause)
	default:
		n.state, n.refused = alive, true
		n.distrust()
		c.forget(n) // it blocks like any other entry
		c.retryDelete(n, now+c.refusedPause())
		for _, acq := range c.acquires {
			if acq.spec.Try {
				acq.retry(now) // it may be waiting for this one
			}
		}
		if p := n.parting; p != nil && p.report && !p.told {
			p.told = true
			c.signal(Signal{ID: p.id, Kind: Released, Err: cmp.Or(p.err, r.Err)})
		}
	}
}

// retryDelete schedules the next attempt to delete a znode. A client may have thousands of
// pending deletes, so no step may visit each of them.
func (c *Core) retryDelete(n *node, at time.Duration) {
	n.retryAt = at
	if c.deletesAt == 0 || at < c.deletesAt {
		c.deletesAt = at
	}
}

// retryDeletes retries the deletes that are due.
func (c *Core) retryDeletes(now time.Duration) {
	c.deletesAt = 0
	var due []*node
	for _, n := range c.pendingDeletes {
		switch {
		case n.retryAt == 0:
		case n.retryAt <= now:
			n.retryAt = 0
			due = append(due, n)
		default:
			c.retryDelete(n, n.retryAt)
		}
	}
	c.disposeAll(now, due)
}

// missing finishes a pending delete whose znode does not exist. If only another client
// can have deleted it, its hold was broken before the release, and another client may
// have held the lock since. The release reports that.
func (c *Core) missing(n *node) {
	if n.due {
		c.finish(n, ErrGone)
		return
	}
	c.finish(n, nil)
}

// distrust makes the core read a pending delete with a reusable name before it deletes
// it, because the name may belong to another znode by then: another client may have
// deleted the lock, or the servers may have deleted an empty parent.
func (n *node) distrust() {
	if n.state == alive && n.named == byData {
		n.state = unknown
	}
}

// finish removes a pending delete whose znode is gone.
func (c *Core) finish(n *node, err error) {
	unanswered := (n.czxid == 0 || n.unsure) && n.state != creating
	n.state = absent
	c.forget(n)
	if unanswered {
		c.unanswered = append(c.unanswered, n)
		c.boundUnanswered(maxUnsettled)
	}
	if i := slices.Index(c.pendingDeletes, n); i >= 0 {
		c.pendingDeletes = deleteAt(c.pendingDeletes, i)
	}
	p := n.parting
	n.parting = nil
	if p == nil {
		return
	}
	p.left--
	p.err = cmp.Or(p.err, err)
	if p.left == 0 && p.report && !p.told {
		p.told = true
		c.signal(Signal{ID: p.id, Kind: Released, Err: p.err})
	}
}

// maxUnanswered bounds the number of znodes that the core searches for again. While the servers
// may move the session back and apply late creates, the bound is maxUnsettled: one acquire can
// create more than maxUnanswered znodes, and each of them would block its lock.
const (
	maxUnanswered = 64
	maxUnsettled  = 4096
)

// boundUnanswered drops all but the last of the znodes that the core searches for again.
func (c *Core) boundUnanswered(most int) {
	c.unanswered = slices.Delete(c.unanswered, 0, max(0, len(c.unanswered)-most))
}

// searchAgain makes the znodes pending deletes again whose creates were not answered. They
// are gone, but a server without a leader may have such a create in its log that it does
// not have in memory, and apply it when it restarts (ZOOKEEPER-4712). The znode would then
// block the lock for as long as this session lives. A restart ends connections, so the core
// searches for these znodes on each new connection.
func (c *Core) searchAgain() {
	for _, n := range c.unanswered {
		// The czxid is that of a later create of a fixed node, whose znode is gone.
		n.state, n.czxid = unknown, 0
	}
	c.pendingDeletes = append(c.pendingDeletes, c.unanswered...)
	c.unanswered = nil
}

// A probe searches one parent for pending deletes whose create was not answered. A
// listing alone proves nothing: another server, or a leader that still has the old
// connection's create in its pipeline, may answer it before the create is applied. So
// the probe sends a write of this session before it on the same connection. The session's
// requests are executed in order, so after the write the old create is either applied or
// never will be, except while the servers may move the session back to an earlier
// connection: see [Core.unsettledUntil].
type probe struct {
	parent string
	conn   uint64 // on which the write was answered; 0 if it was not
}

// probe starts a probe of a parent, unless one is in flight.
func (c *Core) probe(parent string) {
	if slices.ContainsFunc(c.probes, func(p probe) bool { return p.parent == parent }) {
		return
	}
	c.probes = append(c.probes, probe{parent: parent})
	barrier := Request{Kind: Check, Paths: []string{parent}}
	c.send(barrier, func(now time.Duration, r Reply) {
		// A missing parent is also an answer from the quorum.
		if r.Code == OK || r.Code == NoNode {
			for i := range c.probes {
				if c.probes[i].parent == parent {
					c.probes[i].conn = r.Conn
				}
			}
		}
	})
	c.send(Request{Kind: List, Path: parent}, func(now time.Duration, r Reply) {
		i := slices.IndexFunc(c.probes, func(p probe) bool { return p.parent == parent })
		if i < 0 {
			return
		}
		p := c.probes[i]
		c.probes = slices.Delete(c.probes, i, i+1)
		if r.Code == Refused {
			c.pause(parent, now+c.refusedPause())
			return
		}
		proof := p.conn != 0 && p.conn == r.Conn && (r.Code == OK || r.Code == NoNode)
		c.probed(now, parent, r.Children, proof)
	})
}

// pause delays the search for a parent's unknown znodes.
func (c *Core) pause(parent string, until time.Duration) {
	for _, n := range c.pendingDeletes {
		if n.parent == parent && n.state == unknown {
			c.retryDelete(n, until)
		}
	}
}

// probed resolves the unknown znodes of a parent. It deletes those that the listing shows.
// The others are gone if the listing proves it.
func (c *Core) probed(now time.Duration, parent string, children []string, proof bool) {
	for _, n := range slices.Clone(c.pendingDeletes) {
		if n.parent != parent || n.state != unknown || n.fixed || n.named == forever {
			continue
		}
		if n.named == byData {
			c.searchData(now, n, children, proof)
			continue
		}
		var found []string
		for _, name := range children {
			if strings.HasPrefix(name, n.prefix) {
				found = append(found, name)
			}
		}
		switch {
		case len(found) > 1: // another client has copied the GUID
			n.name = ""
			c.searchData(now, n, found, proof)
		case len(found) == 1:
			n.name, n.state = found[0], alive
			c.dispose(now, n)
		case proof:
			c.missing(n)
		default:
			c.retryDelete(n, now+retryPause)
		}
	}
}

// searchData reads every child whose name is or may be the znode's, to find the one of this
// session with its id. If the search is incomplete, a znode that it does not find may still
// exist.
func (c *Core) searchData(now time.Duration, n *node, children []string, proof bool) {
	n.state = searching
	left, pause := 1, retryPause
	settled := func(now time.Duration) {
		if left--; left > 0 || n.state != searching {
			return
		}
		n.state = unknown
		if proof {
			c.missing(n)
		} else {
			c.retryDelete(n, now+pause)
		}
	}
	for _, name := range children {
		if !strings.HasPrefix(name, n.prefix) || n.name != "" && name != n.name {
			continue
		}
		left++
		c.send(Request{Kind: Get, Path: n.parent + "/" + name}, func(now time.Duration, r Reply) {
			switch {
			case n.state != searching:
			case r.Code == OK && c.isOwn(n, name, r):
				n.name, n.state = name, alive
				c.dispose(r.Sent, n)
			case r.Code == Refused && n.name != "":
				// A client that may not read the znode may still be able to delete it, and the
				// znode blocks the queue. Only assumption A6 excludes that it is another znode.
				n.state = alive
				c.dispose(r.Sent, n)
			case r.Code == Refused:
				proof, pause = false, c.refusedPause()
			case r.Code != OK && r.Code != NoNode:
				proof = false
			}
			settled(now)
		})
	}
	settled(now)
}
