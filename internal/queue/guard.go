package queue

import (
	"strings"
	"time"
)

// Guard asks a quorum whether the hold's znodes are there, and has it carry out
// the operations of the call in the same transaction, of which the core knows
// nothing. call comes back in the Verified signal.
func (c *Core) Guard(now time.Duration, id ID, call uint64) {
	c.advance(now)
	answer := Signal{ID: id, Kind: Verified, Call: call, Failed: -1}
	cl := c.claim(id)
	switch {
	case cl == nil || cl.phase != held:
		answer.Err = ErrNotHeld
	case cl.swap != nil: // which of its znodes is there will be known in a moment
		answer.Err = ErrUnproven
	}
	if answer.Err != nil {
		c.signal(answer)
		return
	}
	nodes := cl.nodes()
	c.send(Request{Kind: Guard, Paths: paths(nodes), Call: call}, func(now time.Duration, r Reply) {
		switch own := r.Failed >= 0 && r.Failed < len(nodes); {
		case r.Code == OK:
			c.answered(r)
		case r.Code == NoNode && own:
			answer.Err = ErrGone
			c.vanished(now, nodes[r.Failed])
		case r.Code == SessionOver:
			answer.Err = ErrExpired
		case r.Failed >= len(nodes):
			answer.Err, answer.Failed = r.Err, r.Failed-len(nodes)
		case r.Code == Unknown || r.Err == nil:
			answer.Err = ErrUnproven
		default:
			answer.Err = r.Err
		}
		c.signal(answer)
	})
}

// Watch makes the core tell, by a Revoked signal, when somebody asks for the
// hold's lock back, or has asked already.
func (c *Core) Watch(now time.Duration, id ID) {
	c.advance(now)
	cl := c.claim(id)
	if cl == nil || cl.watching {
		return
	}
	cl.watching = true
	switch {
	case cl.revoked:
		c.signal(Signal{ID: id, Kind: Revoked})
	case c.connected():
		c.watchOwns(cl)
	default:
		for _, n := range cl.nodes() {
			n.wantsWatch = true
		}
	}
}

// heed looks at the data of a claim's znode for the words that ask for it back:
// Curator's, those of ZooKeeper's own recipe, and zklock's, which leave the
// owner's data there.
func (c *Core) heed(cl *claim, data []byte) {
	text := string(data)
	if cl.revoked || text != "__REVOKE__" && text != "unlock" && !strings.HasPrefix(text, `{"revoke":true`) {
		return
	}
	cl.revoked = true
	if cl.phase == held && cl.watching {
		c.signal(Signal{ID: cl.id, Kind: Revoked})
	}
}
