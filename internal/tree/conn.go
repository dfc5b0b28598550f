package tree

import (
	"math"
	"slices"

	"github.com/zklock/zklock/internal/sasl"
)

// conn is one connection after its handshake. Identities and watches are the
// connection's, not the session's: a client brings both along when it moves.
type conn struct {
	id      ConnID
	session *session
	ids     []identity
	first   [1]identity  // room for ids: most connections have no more than one
	sasl    *sasl.Server // made with the first token
	share   Share        // see shares
	// watched has the paths on which there is a watch of this connection, so that
	// its end costs no look at all others'. Made with the first watch.
	watched map[string]struct{}
	// fired is the number of the change that it was last told of, or farBehind.
	fired uint64
}

// farBehind stands in conn.fired if it was not told of all: it is told of nothing
// more, and ends with the call.
const farBehind = math.MaxUint64

// addIdentity adds what was proved, once.
func (c *conn) addIdentity(id identity) {
	if !slices.Contains(c.ids, id) {
		c.ids = append(c.ids, id)
	}
}

// identityBytes is how long the connection's identities are together.
func (c *conn) identityBytes() int {
	n := 0
	for _, id := range c.ids {
		n += len(id.id)
	}
	return n
}

// forget removes the connection and its watches, of which the backlog gets what one
// call has no time for; its session lives on, unless
// another connection has taken it over: then it is none of this one's business.
func (t *Tree) forget(c *conn) {
	c.fired = farBehind // or it would be told of watches that are still to be removed
	delete(t.restoring, c)
	if !t.unwatch(c) {
		t.backlog.leaving = append(t.backlog.leaving, c)
	}
	if c.session != nil && c.session.conn == c {
		c.session.conn = nil
	}
	delete(t.conns, c.id)
}

// drop forgets the connection and has it closed after what was sent to it.
func (t *Tree) drop(c *conn, out *Out) {
	t.forget(c)
	if n := len(out.Sends); n > 0 && out.Sends[n-1].Conn == c.id {
		// The usual case, an answer and the close, is one Send.
		out.Sends[n-1].Close = true
		return
	}
	out.Sends = append(out.Sends, Send{Conn: c.id, Close: true})
}

// Disconnect tells that a connection is gone, whoever ended it. Its session
// lives on until its time is over. A connection that the Tree does not know, or
// no more, is not an error.
func (t *Tree) Disconnect(id ConnID, now Now) {
	if c, ok := t.conns[id]; ok {
		t.begin(now)
		t.forget(c)
	}
}
