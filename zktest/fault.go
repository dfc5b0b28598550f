package zktest

import (
	"slices"
	"strings"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// Match says which requests a fault is about.
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
}

// Fault is a fault that happens once, to one request. Its methods may be
// called from any goroutine.
type Fault struct {
	relay *Relay
	match Match
	reply bool          // it is the reply that gets lost
	done  chan struct{} // closed when it has happened
}

// Done is closed when the fault has happened.
func (f *Fault) Done() <-chan struct{} { return f.done }

// Stop takes the fault back if it has not found its request yet.
func (f *Fault) Stop() {
	f.relay.mu.Lock()
	defer f.relay.mu.Unlock()
	f.relay.rules = slices.DeleteFunc(f.relay.rules, func(g *Fault) bool { return g == f })
}

// DropReply lets one request that matches through to the server, swallows the
// reply, and cuts the connection: the client cannot know that the request was
// applied.
func (r *Relay) DropReply(m Match) *Fault { return r.addFault(m, true) }

// DropRequest swallows one request that matches and cuts the connection: the
// client cannot know that the request was not applied.
func (r *Relay) DropRequest(m Match) *Fault { return r.addFault(m, false) }

func (r *Relay) addFault(m Match, reply bool) *Fault {
	f := &Fault{relay: r, match: m, reply: reply, done: make(chan struct{})}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rules = append(r.rules, f)
	return f
}

// hit returns the fault that the request op on path falls to, if any, and
// takes it off the list.
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
		r.rules = slices.Delete(r.rules, i, i+1)
		return f
	}
	return nil
}

func (m *Match) matches(op, path string) bool {
	if m.Op == "" && (op == "ping" || op == "connect") {
		return false
	}
	return (m.Op == "" || m.Op == op) && strings.HasPrefix(path, m.Path)
}

// pending is a request whose reply has not passed.
type pending struct {
	xid   int32
	fault *Fault // swallows the reply; nil for most
}

// inspect looks at a frame on its way and reports whether it shall pass.
// Otherwise the link is to be cut.
func (l *link) inspect(d Direction, frame []byte) bool {
	l.mu.Lock()
	first := !l.greeted[d]
	l.greeted[d] = true
	l.mu.Unlock()
	switch {
	case d == ToServer && first:
		return l.inspectRequest(0, "connect", "")
	case d == ToServer:
		xid, op, path := parseRequest(frame)
		return l.inspectRequest(xid, op, path)
	case first:
		l.relay.learn(frame)
		return l.inspectReply(0)
	}
	return l.inspectReply(jute.NewReader(frame).Int32())
}

func (l *link) inspectRequest(xid int32, op, path string) bool {
	f := l.relay.hit(op, path)
	if f != nil && !f.reply {
		close(f.done)
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending = append(l.pending, pending{xid: xid, fault: f})
	return true
}

func (l *link) inspectReply(xid int32) bool {
	if xid == wire.XidEvent {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.pending, func(p pending) bool { return p.xid == xid })
	if i < 0 {
		return true
	}
	f := l.pending[i].fault
	l.pending = slices.Delete(l.pending, i, i+1)
	if f != nil {
		close(f.done)
	}
	return f == nil
}

// parseRequest reads what a rule may ask about. A request that cannot be read
// gives what could be: judging it is the server's business.
func parseRequest(frame []byte) (xid int32, op, path string) {
	r := jute.NewReader(frame)
	var h wire.RequestHeader
	h.Decode(r)
	switch h.Op {
	case wire.OpMulti, wire.OpMultiRead:
		r.Int32() // the header of the first operation: its code,
		r.Bool()  // whether it is the last,
		r.Int32() // and an error
		path = r.String()
	case wire.OpAuth, wire.OpSetWatches, wire.OpSetWatches2, wire.OpSASL, wire.OpReconfig:
	default:
		path = r.String()
	}
	if r.Err() != nil {
		path = ""
	}
	return h.Xid, h.Op.String(), path
}
