package zktest

import (
	"slices"
	"strings"

	"github.com/zklock/zklock/internal/wire"
)

// A Match selects the requests that a fault applies to. The zero Match selects the next
// request of any client.
type Match struct {
	// Op is the operation, by its name in ZooKeeper's ZooDefs.OpCode, such as "create2",
	// "delete", "multi", "getChildren2", "ping", or "closeSession", and "connect" for the
	// handshake. "create" and "create2" both match either of them. "delete" also matches a
	// multi that deletes a znode. Empty means any except ping and connect.
	Op string
	// Path is a prefix of the request's path; for a multi, of the path of its first
	// operation, or with "delete" of a path that it deletes. Empty means any.
	Path string
	// Skip is the number of matching requests that pass before the fault.
	Skip int
	// Times is the number of requests that the fault applies to. Zero means one, and a
	// negative number all until Stop.
	Times int
}

// A Fault applies to requests. It is safe for concurrent use.
type Fault struct {
	relay *Relay
	kind  faultKind
	done  chan struct{} // closed after the last time

	// Guarded by relay.mu.
	match Match
	left  int // remaining requests; negative means no limit
	count int // number of times that the fault occurred
}

// faultKind is the effect on a request.
type faultKind int

const (
	loseRequest faultKind = iota
	loseReply
	cutAfter
)

// Done returns a channel that is closed when the fault has occurred for the last time.
func (f *Fault) Done() <-chan struct{} { return f.done }

// Count returns how often the fault has occurred.
func (f *Fault) Count() int {
	f.relay.mu.Lock()
	defer f.relay.mu.Unlock()
	return f.count
}

// Stop ends the fault. Requests that it has already selected are still affected.
func (f *Fault) Stop() {
	f.relay.mu.Lock()
	defer f.relay.mu.Unlock()
	f.relay.rules = slices.DeleteFunc(f.relay.rules, func(g *Fault) bool { return g == f })
}

// DropReply lets a matching request pass to the server, drops the reply, and closes the
// connection. The client cannot know that the request was applied.
func (r *Relay) DropReply(m Match) *Fault { return r.addFault(m, loseReply) }

// DropRequest drops a matching request and closes the connection. The client cannot know
// that the request was not applied.
func (r *Relay) DropRequest(m Match) *Fault { return r.addFault(m, loseRequest) }

// CutAfter closes the connection after the reply to a matching request. The client has the
// reply, and loses its other requests in flight. CutAfter(Match{Op: "create2", Skip: 2})
// closes the connection after the third create.
func (r *Relay) CutAfter(m Match) *Fault { return r.addFault(m, cutAfter) }

func (r *Relay) addFault(m Match, kind faultKind) *Fault {
	f := &Fault{relay: r, match: m, kind: kind, left: m.Times, done: make(chan struct{})}
	if f.left == 0 {
		f.left = 1
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rules = append(r.rules, f)
	return f
}

// hit returns the fault that applies to the request op on path, if any. frame is the request.
// hit removes a fault after its last request.
func (r *Relay) hit(op, path string, frame []byte) *Fault {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, f := range r.rules {
		if !f.match.matches(op, path, frame) {
			continue
		}
		if f.match.Skip > 0 {
			f.match.Skip--
			continue
		}
		if f.left > 0 {
			f.left--
		}
		if f.left == 0 {
			r.rules = slices.Delete(r.rules, i, i+1)
		}
		return f
	}
	return nil
}

// happened counts an occurrence, and closes done after the last one.
func (f *Fault) happened() {
	f.relay.mu.Lock()
	defer f.relay.mu.Unlock()
	f.count++
	if f.count == max(f.match.Times, 1) && f.match.Times >= 0 {
		close(f.done)
	}
}

func (m *Match) matches(op, path string, frame []byte) bool {
	if m.Op == "" && (op == opPing || op == opConnect) {
		return false
	}
	if m.Op == wire.OpDelete.String() && op == wire.OpMulti.String() {
		return multiDeletes(frame, m.Path)
	}
	return (m.Op == "" || plain(m.Op) == plain(op)) && strings.HasPrefix(path, m.Path)
}

// plain returns the older name of a create: clients use either request.
func plain(op string) string {
	if op == "create2" {
		return "create"
	}
	return op
}

// pending is a request whose reply has not passed.
type pending struct {
	xid      int32
	op, path string
	fault    *Fault // applies to the reply; usually nil
	// malformed: the imitated server answers that it cannot decode the request.
	malformed bool
}

// verdict is what happens to a frame and its link.
type verdict int

const (
	passOn     verdict = iota
	cutBefore          // drop the frame, and close the link
	hangBehind         // pass the frame, and then close the link
	// The imitated server answers, and the link closes; see Release.
	answerUnknown
	// Pass the frame instead of the client's, and replace its answer.
	answerMalformed
)

// inspection is the result of the inspection of a frame.
type inspection struct {
	frame   Frame
	verdict verdict
	fault   *Fault // occurs with the verdict; may be nil
	data    []byte // if not nil, passes instead of the frame
}

// inspect decides about a frame.
func (l *link) inspect(d Direction, frame []byte) inspection {
	l.mu.Lock()
	first := !l.greeted[d]
	l.greeted[d] = true
	l.mu.Unlock()
	f := Frame{Direction: d, Size: len(frame) + 4}
	switch {
	case d == ToServer && first:
		f.Op = opConnect
		return l.inspectRequest(0, f, frame)
	case d == ToServer:
		var xid int32
		xid, f.Op, f.Path = parseRequest(frame)
		return l.imitate(xid, f, frame)
	case first:
		l.relay.known.learn(frame)
		return l.inspectReply(0, f, frame)
	}
	xid, path := parseReply(frame)
	if xid == wire.XidEvent {
		f.Op, f.Path = opEvent, path
		return inspection{frame: f, data: l.relay.imitated().event(frame)}
	}
	return l.inspectReply(xid, f, frame)
}

// imitate lets the imitated server decide about a request, and then the faults.
func (l *link) imitate(xid int32, f Frame, frame []byte) inspection {
	verdict, passes := l.relay.imitated().imitate(frame)
	switch verdict {
	case cutBefore:
		return inspection{frame: f, verdict: verdict}
	case answerUnknown:
		return inspection{frame: f, verdict: verdict, data: refusal(frame)}
	}
	seen := l.inspectRequest(xid, f, frame)
	if seen.verdict != passOn || passes == nil {
		return seen
	}
	seen.data = framed(passes)
	if verdict == answerMalformed {
		l.mu.Lock()
		l.pending[len(l.pending)-1].malformed = true // see inspectRequest
		l.mu.Unlock()
	}
	return seen
}

func (l *link) inspectRequest(xid int32, f Frame, frame []byte) inspection {
	fault := l.relay.hit(f.Op, f.Path, frame)
	if fault != nil && fault.kind == loseRequest {
		return inspection{frame: f, verdict: cutBefore, fault: fault}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending = append(l.pending, pending{xid: xid, op: f.Op, path: f.Path, fault: fault})
	return inspection{frame: f}
}

// inspectReply finds the request that a reply belongs to.
func (l *link) inspectReply(xid int32, f Frame, frame []byte) inspection {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.pending, func(p pending) bool { return p.xid == xid })
	if i < 0 {
		return inspection{frame: f}
	}
	p := l.pending[i]
	if i == 0 { // nearly always, and then the others need not move
		l.pending[0] = pending{}
		l.pending = l.pending[1:]
	} else {
		l.pending = slices.Delete(l.pending, i, i+1)
	}
	f.Op, f.Path = p.op, p.path
	switch {
	case p.malformed:
		return inspection{frame: f, data: malformed(frame)}
	case p.fault == nil:
		return inspection{frame: f}
	case p.fault.kind == cutAfter:
		return inspection{frame: f, verdict: hangBehind, fault: p.fault}
	}
	return inspection{frame: f, verdict: cutBefore, fault: p.fault}
}
