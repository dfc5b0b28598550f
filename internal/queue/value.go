package queue

import (
	"bytes"
	"time"
)

// A dataUpdate replaces the data of a hold's znodes. A release request is also written there,
// by another client, so the two must not overwrite each other. Two rules exclude that:
//
//   - The core writes only to a version whose data it knows, and a server applies the write
//     only if the znode still has that version. The core knows version 0, which it created,
//     the versions that it read and checked for a request, and the versions that its own
//     writes made. So no write replaces a request that the core has not seen.
//   - Once the core has seen a request, it writes the request and its details with the data.
//
// Clients of this package also write a request only to the version that they read. They
// read again if it has changed, and then write the request into the new data. Curator's
// Revoker replaces any version: the request remains, and the data return with the next
// update.
//
// The versions also settle a lost answer. If the core sends the write again and the first
// one was applied, the version has changed. The core then reads the znode, and finds its
// own data or those of another client. If the first write is applied late, after the second,
// the version that it expects is gone.
//
// A znode with a reusable name cannot be updated: its version does not tell it from the
// znode of another client.
type dataUpdate struct {
	call     uint64
	data     []byte // a JSON object
	underWay bool   // a request is unanswered
	rounds   int    // how often another client had changed the data
}

// maxUpdateRounds bounds how often an update reads the data and writes again.
const maxUpdateRounds = 8

// SetData replaces the data of the hold's znodes. If a release request was seen, the new
// data include it. A DataSet signal follows; its error is ErrNotHeld if the hold ends first.
// The caller does not use it for reusable names.
func (c *Core) SetData(now time.Duration, id ID, data []byte, call uint64) {
	c.advance(now)
	acq := c.acquireByID(id)
	switch {
	case acq == nil || acq.phase != held:
		c.signal(Signal{ID: id, Kind: DataSet, Call: call, Err: ErrNotHeld})
	case acq.update != nil || acq.swap != nil: // the znodes are changing
		c.signal(Signal{ID: id, Kind: DataSet, Call: call, Err: ErrUnproven})
	default:
		acq.update = &dataUpdate{call: call, data: data}
		c.sendUpdate(acq)
	}
}

// updated ends the update with its outcome.
func (c *Core) updated(acq *acquire, err error) {
	c.signal(Signal{ID: acq.id, Kind: DataSet, Call: acq.update.call, Err: err})
	acq.update = nil
}

// updateData returns what the update writes.
func (acq *acquire) updateData() []byte {
	if acq.revoked {
		return WithRequest(acq.update.data, acq.request)
	}
	return acq.update.data
}

// sendUpdate writes the data, or writes them again, unless a request is unanswered.
func (c *Core) sendUpdate(acq *acquire) {
	u := acq.update
	if u.underWay || !c.connected() {
		return
	}
	u.underWay = true
	nodes := acq.nodes()
	r := Request{Kind: SetAll, Paths: paths(nodes), Data: acq.updateData()}
	for _, n := range nodes {
		r.Versions = append(r.Versions, n.version)
	}
	sent := r.Versions
	c.send(r, func(now time.Duration, r Reply) {
		if acq.update != u {
			return
		}
		u.underWay = false
		switch r.Code {
		case OK:
			for i, n := range nodes {
				n.version = max(n.version, sent[i]+1)
			}
			c.answered(r)
			c.updated(acq, nil)
		case BadVersion:
			c.readUpdate(acq, nodes, r.Err)
		case NoNode:
			c.vanished(now, nodes[max(0, r.Failed)]) // which ends the hold and the update
		case Unknown, NotApplied:
			acq.retry(now + retryPause)
		case SessionOver: // the session change follows, and ends the hold
		default:
			c.updated(acq, r.Err)
		}
	})
}

// readUpdate reads znodes that have another version than expected: another client has
// written a release request, or an earlier write of the update was applied.
func (c *Core) readUpdate(acq *acquire, nodes []*node, why error) {
	u := acq.update
	u.underWay = true
	left, written, read := len(nodes), true, true
	for _, n := range nodes {
		c.send(Request{Kind: Get, Path: n.path()}, func(now time.Duration, r Reply) {
			if acq.update != u {
				return
			}
			switch r.Code {
			case OK:
				c.read(n, r)
				written = written && (bytes.Equal(r.Data, u.data) || acq.revoked && bytes.Equal(r.Data, WithRequest(u.data, acq.request)))
			case NoNode:
				c.vanished(now, n)
				return
			case Refused:
				c.updated(acq, r.Err)
				return
			default:
				read = false
			}
			if left--; left > 0 {
				return
			}
			u.underWay = false
			u.rounds++
			switch {
			case !read:
				acq.retry(now + retryPause) // writes to the known versions again
			case written:
				c.updated(acq, nil)
			case u.rounds == maxUpdateRounds:
				c.updated(acq, why)
			default:
				c.sendUpdate(acq)
			}
		})
	}
}
