package queue

import "time"

// Guard checks the hold's znodes at a quorum and applies the operations of the call in the
// same transaction. The core does not know these operations. The Verified signal carries
// call.
func (c *Core) Guard(now time.Duration, id ID, call uint64) {
	c.advance(now)
	answer := Signal{ID: id, Kind: Verified, Call: call, Failed: -1}
	acq := c.acquireByID(id)
	switch {
	case acq == nil || acq.phase != held:
		answer.Err = ErrNotHeld
	case acq.swap != nil: // it is not known yet which of its znodes exists
		answer.Err = ErrUnproven
	}
	if answer.Err != nil {
		c.signal(answer)
		return
	}
	nodes := acq.nodes()
	acq.guards++
	c.send(Request{Kind: Guard, Paths: paths(nodes), Call: call}, func(now time.Duration, r Reply) {
		if r.Code != Unknown { // otherwise it may still be applied, from the former connection
			acq.guards--
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
