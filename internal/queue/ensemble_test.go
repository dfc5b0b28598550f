package queue

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"time"
)

// znode is one znode of the model.
type znode struct {
	data             []byte
	owner            int64
	czxid, mzxid     int64
	pzxid            int64
	version, creates int32
	container        bool
}

// An ensemble is a model of ZooKeeper with one tree, sessions, and one-shot watches. For its
// connections, see history.
type ensemble struct {
	rng   *rand.Rand
	zxid  int64
	nodes map[string]*znode
	links []*link
}

// link is a client with its session and its connection.
type link struct {
	core    *Core
	name    int
	session int64
	conn    uint64
	up      bool
	heard   time.Duration // when the servers last heard from the session
	timeout time.Duration

	in        []sentRequest // requests in flight
	late      []sentRequest // requests of a lost connection that a server may still apply
	out       []message     // answers and events in flight
	seen      int64         // the last zxid of an answer
	deletedAt int64         // the last transaction that deleted the lock, as far as the client has read

	asks, keeps    bool            // the next Unwatch only asks; the servers cannot remove watches
	data, children map[string]bool // watches on the servers
	missing        map[string]bool // watches of znodes that do not exist
	known          map[string]bool // watches that the client knows: "d" or "c", and the path
}

type sentRequest struct {
	Request
	at time.Duration
}

// message is a reply or an event.
type message struct {
	zxid  int64
	reply *Reply
	req   Request
	kind  EventKind
	path  string
}

func newEnsemble(rng *rand.Rand) *ensemble {
	return &ensemble{rng: rng, zxid: 100, nodes: map[string]*znode{"": {}, "/q": {}}}
}

func (e *ensemble) childrenOf(dir string) (names []string) {
	for p := range e.nodes {
		if p != "" && path.Dir(p) == dir {
			names = append(names, path.Base(p))
		}
	}
	slices.Sort(names)
	return names
}

// fire sends an event for each watch of p.
func (e *ensemble) fire(set func(*link) map[string]bool, kind EventKind, p string) {
	for _, l := range e.links {
		if set(l)[p] {
			delete(set(l), p)
			l.out = append(l.out, message{zxid: e.zxid, kind: kind, path: p})
		}
	}
}

func dataOf(l *link) map[string]bool     { return l.data }
func childrenOf(l *link) map[string]bool { return l.children }
func missingOf(l *link) map[string]bool  { return l.missing }

// create creates a znode. When the transaction is done, made sends the events.
func (e *ensemble) create(c Creation, owner int64, container bool) (made string, code Code) {
	dir := parentOf(c.Path)
	parent := e.nodes[dir]
	if parent == nil {
		return "", NoNode
	}
	made = c.Path
	if c.Sequential {
		made += fmt.Sprintf("%010d", parent.creates)
	}
	if e.nodes[made] != nil {
		return "", NodeExists
	}
	parent.creates++
	parent.pzxid = e.zxid
	n := &znode{data: c.Data, czxid: e.zxid, mzxid: e.zxid, container: container}
	if !c.Persistent {
		n.owner = owner
	}
	e.nodes[made] = n
	return made, OK
}

func (e *ensemble) made(p string) {
	e.fire(missingOf, Created, p)
	e.fire(childrenOf, Children, parentOf(p))
}

func (e *ensemble) remove(p string) {
	delete(e.nodes, p)
	if parent := e.nodes[parentOf(p)]; parent != nil {
		parent.pzxid = e.zxid
	}
	e.fire(dataOf, Deleted, p)
	e.fire(childrenOf, Children, parentOf(p))
}

// apply applies a request of a session and returns the answer.
func (e *ensemble) apply(l *link, r Request, session int64, reads bool) Reply {
	q := Reply{ID: r.ID, Failed: -1}
	fail := func(i int, code Code) Reply {
		q.Failed, q.Code, q.Err = i, code, fmt.Errorf("code %d of %s", code, show(r))
		return q
	}
	switch r.Kind {
	case List, Get:
		n := e.nodes[r.Path]
		if n == nil {
			return fail(-1, NoNode)
		}
		q.Data, q.Czxid, q.Owner, q.Version = n.data, n.czxid, n.owner, n.version
		q.Children = e.childrenOf(r.Path)
		if r.Watch && reads && r.Kind == List {
			l.children[r.Path] = true
		} else if r.Watch && reads {
			l.data[r.Path] = true
		}
		return q
	}
	switch r.Kind {
	case Sync, Ping:
		return q
	case ReadAccess:
		if e.nodes[strings.TrimSuffix(r.Path, "/")] == nil {
			return fail(-1, NoNode)
		}
		return q
	case SetWatches:
		if reads {
			e.setWatches(l, r)
		}
		return q
	case Unwatch:
		switch {
		case !reads: // the watches of that connection are gone
			return q
		case l.keeps:
			return fail(-1, NoNode)
		case l.asks:
			l.asks = false
			return fail(-1, NotApplied)
		}
		if !l.missing[r.Path] && !l.data[r.Path] {
			return fail(-1, Refused)
		}
		delete(l.missing, r.Path)
		delete(l.data, r.Path)
		return q
	}
	e.zxid++
	q.Czxid, q.Zxid = e.zxid, e.zxid
	switch r.Kind {
	case Set:
		n := e.nodes[r.Path]
		if n == nil {
			return fail(-1, NoNode)
		}
		if n.version != r.Version {
			return fail(-1, Refused)
		}
		e.set(r.Path, r.Data)
	case Delete:
		if e.nodes[r.Path] == nil {
			return fail(-1, NoNode)
		}
		e.remove(r.Path)
	case Check, Guard:
		for i, p := range r.Paths {
			if e.nodes[p] == nil {
				return fail(i, NoNode)
			}
		}
	case Make:
		made, code := e.create(Creation{Path: r.Path, Persistent: true}, 0, r.Container)
		if code != OK {
			return fail(-1, code)
		}
		e.made(made)
	case Create, Swap, Renew, MarkedDelete:
		return e.change(r, session, q, fail)
	}
	return q
}

// change applies a multi of creates and deletes.
func (e *ensemble) change(r Request, session int64, q Reply, fail func(int, Code) Reply) Reply {
	before := maps.Clone(e.nodes)
	counts := map[string]znode{}
	for p, n := range e.nodes {
		counts[p] = *n
	}
	for i, c := range r.Creates {
		made, code := e.create(c, session, false)
		if code != OK {
			e.nodes = before
			for p, n := range counts {
				*e.nodes[p] = n
			}
			return fail(i, code)
		}
		q.Made = append(q.Made, made)
	}
	for i, p := range r.Paths {
		code := OK
		switch n := e.nodes[p]; {
		case n == nil:
			code = NoNode
		case r.Kind == Swap && r.Versions[i] >= 0 && r.Versions[i] != n.version:
			code = BadVersion
		}
		if code != OK {
			e.nodes = before
			for p, n := range counts {
				*e.nodes[p] = n
			}
			return fail(len(r.Creates)+i, code)
		}
	}
	for _, p := range q.Made {
		e.made(p)
	}
	for _, p := range r.Paths {
		e.remove(p)
	}
	if len(r.Creates) == 1 && r.Kind == Create {
		q.Owner = e.nodes[q.Made[0]].owner
	}
	return q
}

func (e *ensemble) set(p string, data []byte) {
	n := e.nodes[p]
	n.data, n.mzxid = data, e.zxid
	n.version++
	e.fire(dataOf, Changed, p)
}

// expire expires a session.
func (e *ensemble) expire(session int64) {
	e.zxid++
	for _, p := range slices.Sorted(maps.Keys(e.nodes)) {
		if e.nodes[p] != nil && e.nodes[p].owner == session {
			e.remove(p)
		}
	}
	for _, l := range e.links {
		if l.session == session {
			l.session, l.late = 0, nil
			clear(l.data)
			clear(l.children)
			clear(l.missing)
		}
	}
}

// sweep deletes empty containers.
func (e *ensemble) sweep() {
	for _, p := range slices.Backward(slices.Sorted(maps.Keys(e.nodes))) {
		if n := e.nodes[p]; n.container && n.creates > 0 && len(e.childrenOf(p)) == 0 {
			e.zxid++
			e.remove(p)
		}
	}
}

// setWatches sets the watches of a request, and sends an event for each change since its zxid.
func (e *ensemble) setWatches(l *link, r Request) {
	tell := func(kind EventKind, p string) { l.out = append(l.out, message{zxid: -1, kind: kind, path: p}) }
	for _, p := range r.Paths {
		switch n := e.nodes[p]; {
		case n == nil:
			tell(Deleted, p)
		case n.mzxid > r.Zxid:
			tell(Changed, p)
		default:
			l.data[p] = true
		}
	}
	switch {
	case r.Path == "":
	case e.nodes[r.Path] != nil:
		tell(Created, r.Path)
	default:
		l.missing[r.Path] = true
	}
}

// rewatch sets the client's watches again on a new connection.
func (e *ensemble) rewatch(l *link) {
	for _, key := range slices.Sorted(maps.Keys(l.known)) {
		p, n := key[1:], e.nodes[key[1:]]
		kind := Changed
		switch {
		case n == nil:
			kind = Deleted
		case key[0] == 'c' && n.pzxid > l.seen:
			kind = Children
		case key[0] == 'd' && n.mzxid > l.seen:
		case key[0] == 'c':
			l.children[p] = true
			continue
		default:
			l.data[p] = true
			continue
		}
		l.out = append(l.out, message{zxid: -1, kind: kind, path: p})
	}
}

// eventZxid returns the zxid of an event, which some servers do not send.
func (l *link) eventZxid(zxid int64) int64 {
	if l.name%2 == 0 {
		return -1
	}
	return zxid
}

// deliver delivers the next answer or event to the client.
func (l *link) deliver(now time.Duration) {
	n := l.out[0]
	l.out = l.out[1:]
	if n.reply == nil { // other events of the same zxid may follow
		prefix := "d"
		if n.kind == Children {
			prefix = "c"
		}
		delete(l.known, prefix+n.path)
		if n.kind == Deleted {
			delete(l.known, "c"+n.path)
		}
		l.core.Event(now, n.kind, n.path, l.eventZxid(n.zxid))
		return
	}
	if n.req.Watch && n.reply.Code == OK {
		prefix := "d"
		if n.req.Kind == List {
			prefix = "c"
		}
		l.known[prefix+n.req.Path] = true
	}
	if n.req.Kind == Unwatch && n.reply.Code == OK {
		delete(l.known, "d"+n.req.Path)
	}
	l.seen = max(l.seen, n.zxid)
	n.reply.Received = now
	l.core.Reply(now, *n.reply)
}

// isRecord reports whether p is a record of a lock delay.
func isRecord(p string) bool { return strings.HasSuffix(parentOf(p), Held("")) }
