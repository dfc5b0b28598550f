package zktest

import (
	"slices"
	"strings"

	"github.com/zklock/zklock/internal/wire"
)

// Match says which requests a fault is about. The zero Match is the next
// request of any client.
type Match struct {
	// Op is the operation by the name that ZooKeeper's ZooDefs.OpCode gives
	// it, such as "create2", "delete", "multi", "getChildren2", "ping" or
	// "closeSession", and "connect" for the handshake. Empty means any but
	// ping and connect.
	Op string
	// Path is how the request's path begins; of a multi, the path of its first
	// operation. Empty means any.
	Path string
	// Skip is how many requests that match are let through before.
	Skip int
	// Times is to how many requests in a row it happens. Zero means one, a
	// negative number all until the fault is stopped.
	Times int
}

// Fault is something that happens to requests. Its methods may be called from
// any goroutine.
type Fault struct {
	relay *Relay
	kind  faultKind
	done  chan struct{} // closed when it has happened for the last time

	// Guarded by relay.mu.
	match Match
	left  int // requests that it will still fall on; negative for no end
	count int // how often it has happened
}

// faultKind is what becomes of a request.
type faultKind int

const (
	loseRequest faultKind = iota
	loseReply
	cutAfter
)

// Done is closed when the fault has happened, of several Times the last one.
func (f *Fault) Done() <-chan struct{} { return f.done }

// Count is how often the fault has happened.
func (f *Fault) Count() int {
	f.relay.mu.Lock()
	defer f.relay.mu.Unlock()
	return f.count
}

// Stop takes the fault back as far as it has not found its requests yet.
func (f *Fault) Stop() {
	f.relay.mu.Lock()
	defer f.relay.mu.Unlock()
	f.relay.rules = slices.DeleteFunc(f.relay.rules, func(g *Fault) bool { return g == f })
}

// DropReply lets a request that matches through to the server, swallows the
// reply, and cuts the connection: the client cannot know that the request was
// applied.
func (r *Relay) DropReply(m Match) *Fault { return r.addFault(m, loseReply) }

// DropRequest swallows a request that matches and cuts the connection: the
// client cannot know that the request was not applied.
func (r *Relay) DropRequest(m Match) *Fault { return r.addFault(m, loseRequest) }

// CutAfter closes the connection behind the reply to a request that matches:
// the client has the reply, and loses whatever it has under way besides.
// CutAfter(Match{Op: "create2", Skip: 2}) is the end after the third create.
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

// hit returns the fault that the request op on path falls to, if any. One that
// has found its last request leaves the list.
func (r *Relay) hit(op, path string) *Fault {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, f := range r.rules {
		if !f.match.matches(op, path) {
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

// happened counts, and tells whoever waits for the last time.
func (f *Fault) happened() {
	f.relay.mu.Lock()
	defer f.relay.mu.Unlock()
	f.count++
	if f.count == max(f.match.Times, 1) && f.match.Times >= 0 {
		close(f.done)
	}
}

func (m *Match) matches(op, path string) bool {
	if m.Op == "" && (op == opPing || op == opConnect) {
		return false
	}
	return (m.Op == "" || m.Op == op) && strings.HasPrefix(path, m.Path)
}

// pending is a request whose reply has not passed.
type pending struct {
	xid      int32
	op, path string
	fault    *Fault // is about the reply; nil for most
}

// verdict is what shall become of a frame and its link.
type verdict int

const (
	passOn     verdict = iota
	cutBefore          // swallow it, and cut the link
	hangBehind         // let it through, and close the link behind it
)

// inspection is what is known of a frame, and what shall become of it.
type inspection struct {
	frame   Frame
	verdict verdict
	fault   *Fault // that happens once the verdict is carried out; nil for none
}

// inspect looks at a frame on its way.
func (l *link) inspect(d Direction, frame []byte) inspection {
	l.mu.Lock()
	first := !l.greeted[d]
	l.greeted[d] = true
	l.mu.Unlock()
	f := Frame{Direction: d, Size: len(frame) + 4}
	switch {
	case d == ToServer && first:
		f.Op = opConnect
		return l.inspectRequest(0, f)
	case d == ToServer:
		var xid int32
		xid, f.Op, f.Path = parseRequest(frame)
		return l.inspectRequest(xid, f)
	case first:
		l.relay.known.learn(frame)
		return l.inspectReply(0, f)
	}
	xid, path := parseReply(frame)
	if xid == wire.XidEvent {
		f.Op, f.Path = opEvent, path
		return inspection{frame: f}
	}
	return l.inspectReply(xid, f)
}

func (l *link) inspectRequest(xid int32, f Frame) inspection {
	fault := l.relay.hit(f.Op, f.Path)
	if fault != nil && fault.kind == loseRequest {
		return inspection{frame: f, verdict: cutBefore, fault: fault}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending = append(l.pending, pending{xid: xid, op: f.Op, path: f.Path, fault: fault})
	return inspection{frame: f}
}

// inspectReply finds the request that a reply belongs to.
func (l *link) inspectReply(xid int32, f Frame) inspection {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.pending, func(p pending) bool { return p.xid == xid })
	if i < 0 {
		return inspection{frame: f}
	}
	p := l.pending[i]
	l.pending = slices.Delete(l.pending, i, i+1)
	f.Op, f.Path = p.op, p.path
	switch {
	case p.fault == nil:
		return inspection{frame: f}
	case p.fault.kind == cutAfter:
		return inspection{frame: f, verdict: hangBehind, fault: p.fault}
	}
	return inspection{frame: f, verdict: cutBefore, fault: p.fault}
}
