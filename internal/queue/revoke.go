package queue

import (
	"bytes"
	"time"
)

// The data of a znode whose owner is asked to release the lock.
const (
	CuratorRequest = "__REVOKE__"     // Curator's Revoker
	RecipeRequest  = "unlock"         // ZooKeeper's recipe of a revocable lock
	OwnRequest     = `{"revoke":true` // zklock's, before the rest of the owner's JSON
)

// ReleaseRequested reports whether data are a release request.
func ReleaseRequested(data []byte) bool {
	return string(data) == CuratorRequest || string(data) == RecipeRequest || bytes.HasPrefix(data, []byte(OwnRequest))
}

// Watch makes the core send a Revoked signal if another client requests the release of
// the hold. If that has already happened, it sends the signal again, because the present
// owner may not know.
func (c *Core) Watch(now time.Duration, id ID) {
	c.advance(now)
	acq := c.acquireByID(id)
	if acq == nil {
		return
	}
	before := acq.watching
	acq.watching = true
	switch {
	case acq.revoked:
		c.signal(Signal{ID: id, Kind: Revoked})
	case before:
	case c.connected():
		c.watchOwnNodes(acq)
	default:
		for _, n := range acq.nodes() {
			if n.watch == ownUnwatched {
				n.watch = ownWanted
			}
		}
	}
}

// checkRevocation checks the data of an acquire's znode for a release request.
func (c *Core) checkRevocation(acq *acquire, data []byte) {
	if acq.revoked || !ReleaseRequested(data) {
		return
	}
	acq.revoked = true
	if acq.phase == held && acq.watching {
		c.signal(Signal{ID: acq.id, Kind: Revoked})
	}
}
