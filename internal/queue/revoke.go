package queue

import (
	"bytes"
	"time"
)

// What a znode's data say when its owner is asked to give the lock back.
const (
	CuratorWish = "__REVOKE__"     // Curator's Revoker
	RecipeWish  = "unlock"         // ZooKeeper's recipe of a revocable lock
	OwnWish     = `{"revoke":true` // zklock's, before the rest of the owner's JSON
)

// Asked reports whether data ask the znode's owner to give the lock back.
func Asked(data []byte) bool {
	return string(data) == CuratorWish || string(data) == RecipeWish || bytes.HasPrefix(data, []byte(OwnWish))
}

// Watch makes the core tell, by a Revoked signal, when somebody asks for the
// hold's lock back, or has asked already: who has it now may not have been told.
func (c *Core) Watch(now time.Duration, id ID) {
	c.advance(now)
	cl := c.claim(id)
	if cl == nil {
		return
	}
	before := cl.watching
	cl.watching = true
	switch {
	case cl.revoked:
		c.signal(Signal{ID: id, Kind: Revoked})
	case before:
	case c.connected():
		c.watchOwns(cl)
	default:
		for _, n := range cl.nodes() {
			n.wantsWatch = true
		}
	}
}

// heed looks at the data of a claim's znode for a wish.
func (c *Core) heed(cl *claim, data []byte) {
	if cl.revoked || !Asked(data) {
		return
	}
	cl.revoked = true
	if cl.phase == held && cl.watching {
		c.signal(Signal{ID: cl.id, Kind: Revoked})
	}
}
