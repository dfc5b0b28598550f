package queue

import "time"

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
	cl.guards++
	c.send(Request{Kind: Guard, Paths: paths(nodes), Call: call}, func(now time.Duration, r Reply) {
		if r.Code != Unknown { // else it may yet be done, on the former connection
			cl.guards--
		}
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
