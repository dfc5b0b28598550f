package session

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// A release is a series of ZooKeeper releases, by the requests that its servers know.
type release uint8

// The releases that first knew requests of this client.
const (
	release34 release = iota
	release35         // create2, containers, and the removal of watches
	release36         // multiRead and persistent watches
	release37         // whoAmI
	newest    = release37
)

// since returns the first release that knows a request.
func since(code wire.OpCode) release {
	switch code {
	case wire.OpCreate2, wire.OpCreateContainer, wire.OpCreateTTL, wire.OpReconfig, wire.OpCheckWatches, wire.OpRemoveWatches:
		return release35
	case wire.OpMultiRead, wire.OpAddWatch, wire.OpSetWatches2, wire.OpGetEphemerals, wire.OpGetAllChildrenNumber:
		return release36
	case wire.OpWhoAmI:
		return release37
	}
	return release34
}

// since returns the first release that knows the operation, with those in a multi.
func (o *Op) since() release {
	first := since(o.Code)
	for i := range o.Sub {
		first = max(first, since(o.Sub[i].Code))
	}
	return first
}

// learn records that the server in use is of this release or an older one. During a rolling
// upgrade, servers of several releases form one ensemble, and a new one may pass a request
// on to an old one. So the oldest server that is known decides.
func (c *Core) learn(r release) {
	server := c.cfg.Servers[c.current]
	if known, ok := c.oldServers[server]; ok {
		r = min(r, known)
	}
	if c.oldServers == nil {
		c.oldServers = make(map[string]release)
	}
	c.oldServers[server] = r
	c.updateRelease()
}

// updateRelease finds the oldest server.
func (c *Core) updateRelease() {
	c.release = newest
	for _, r := range c.oldServers {
		c.release = min(c.release, r)
	}
}

// forgetOldServers forgets what the next connection cannot find out without harm; see
// askRelease.
func (c *Core) forgetOldServers() {
	maps.DeleteFunc(c.oldServers, func(_ string, r release) bool { return r > release34 })
	c.leader = leader{}
	c.updateRelease()
}

// proves reports whether a server that answers Unimplemented does not know the request.
// New servers answer so too if their configuration forbids the last two.
func (o *Op) proves() bool {
	return since(o.Code) > release34 && o.Code != wire.OpCreateTTL && o.Code != wire.OpReconfig
}

// unknownRequest handles an answer to a request that the server does not know. Such a server
// answers before it has answered earlier requests, closes the connection, and does not read
// the requests after it. The core therefore gives up the connection, with the error that
// unknownRequest returns.
//
// If finished is true, call is the oldest request, and its answer is still to be processed.
// A create2 was not executed, and the next connection sends it as a create; see send.
func (c *Core) unknownRequest(call *Call) (finished bool, err error) {
	c.learn(call.Op.since() - 1)
	finished = call == c.pending.first && call.Op.Code != wire.OpCreate2
	call.refused = !finished
	return finished, fmt.Errorf("%w: %s", ErrOldServer, call.Op.Code)
}

// refuseReads marks the pending reads. Their submitters may send them again, because it does
// not matter whether the server has executed them.
func (c *Core) refuseReads() {
	for call := c.pending.first; call != nil; call = call.next {
		switch call.Op.Code {
		case wire.OpExists, wire.OpGetData, wire.OpGetACL, wire.OpGetChildren, wire.OpGetChildren2:
			call.refused = true
		}
	}
}

// refuseUnknown fails queued calls that the servers do not know.
func (c *Core) refuseUnknown() {
	for call := c.queue.first; call != nil; {
		next := call.next
		if c.unknown(&call.Op) {
			c.queue.remove(call)
			c.refuse(call)
		}
		call = next
	}
}

// unknown reports whether the servers do not know an operation, nor an older one that has
// the same effect.
func (c *Core) unknown(o *Op) bool {
	switch {
	case o.Code == wire.OpCreate2:
		return false
	case c.leader.old && o.newWrite():
		return true
	}
	return c.release < newest && o.since() > c.release
}

// refuse fails a call as a server does that does not know it.
func (c *Core) refuse(call *Call) {
	call.Result.Code, call.Result.Applied = wire.ErrUnimplemented, No
	c.finishCall(call)
}

// configPath is a znode that all servers since 3.5 have.
const configPath = "/zookeeper/config"

// askRelease finds out whether a server is of 3.4, and so whether it has been upgraded.
// Every server knows the request. The core sends it only if it knows an old server. No
// harmless request tells 3.6 from 3.5.
func (c *Core) askRelease(now time.Duration) {
	if c.release > release35 || c.closing {
		return
	}
	c.releaseCall = Call{Op: Op{Code: wire.OpExists, Path: configPath}}
	c.send(&c.releaseCall, now)
}

// releaseAnswered takes the answer to askRelease.
func (c *Core) releaseAnswered(code wire.ErrCode) {
	server := c.cfg.Servers[c.current]
	switch known, ok := c.oldServers[server]; {
	case code == wire.ErrNoNode:
		c.learn(release34)
	case code == wire.ErrOK && ok && known == release34:
		delete(c.oldServers, server)
		c.updateRelease()
	}
}

// dropPersistent forgets the persistent watches, and returns their paths in order. Servers
// before 3.6 cannot set them.
func (w *watches) dropPersistent() []string {
	var dropped []string
	for _, path := range slices.Sorted(maps.Keys(w.paths)) {
		if w.remove(path, persistentWatch|recursiveWatch) != 0 {
			dropped = append(dropped, path)
		}
	}
	return dropped
}

// hasPersistent reports whether there is a persistent watch.
func (w *watches) hasPersistent() bool {
	for _, k := range w.paths {
		if k&(persistentWatch|recursiveWatch) != 0 {
			return true
		}
	}
	return false
}
