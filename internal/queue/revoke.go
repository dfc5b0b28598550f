package queue

import (
	"bytes"
	"encoding/json"
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
	return bareRequest(data) || bytes.HasPrefix(data, []byte(OwnRequest))
}

// bareRequest reports whether data are a release request without anything of the data that it has
// replaced, so they do not tell which library made the entry.
func bareRequest(data []byte) bool {
	return string(data) == CuratorRequest || string(data) == RecipeRequest
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

// maxDetails bounds what is kept of the details of a release request, in bytes.
const maxDetails = 4 << 10

// requestDetails returns the details in a release request of zklock: a JSON object that says
// who asks and why, or nil.
func requestDetails(data []byte) []byte {
	var z struct {
		Request json.RawMessage `json:"request"`
	}
	if !bytes.HasPrefix(data, []byte(OwnRequest)) || json.Unmarshal(data, &z) != nil || len(z.Request) > maxDetails {
		return nil
	}
	return z.Request
}

// WithRequest adds a release request to data that zklock wrote: a JSON object. details is a
// JSON object that says who asks and why, or nil.
func WithRequest(data, details []byte) []byte {
	rest := bytes.TrimLeft(data[1:], " \t\r\n")
	out := []byte(OwnRequest)
	if len(details) > 0 {
		out = append(append(out, `,"request":`...), details...)
	}
	if rest[0] != '}' {
		out = append(out, ',')
	}
	return append(out, rest...)
}

// read handles the data that were read of one of the client's own znodes: they can be a
// release request.
func (c *Core) read(n *node, r Reply) {
	n.version = max(n.version, r.Version)
	acq := n.owner
	if acq.revoked || !ReleaseRequested(r.Data) {
		return
	}
	acq.revoked, acq.request = true, requestDetails(r.Data)
	if acq.phase == held && acq.watching {
		c.signal(Signal{ID: acq.id, Kind: Revoked})
	}
}
