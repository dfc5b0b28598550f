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

// evidence is how the core learned that a server is old.
type evidence uint8

const (
	answered  evidence = iota // the server answered that it does not know a request
	suspected                 // connections ended without an answer to such a request
)

// An oldServer is a server that did not know a request.
type oldServer struct {
	release release // the latest that the server can be of
	by      evidence
}

// maxEndings is how many connections in a row may end without an answer to a request of a
// newer release. After that, the core assumes that the server does not know the request.
const maxEndings = 3

// learn records that the server in use is of this release or an older one. During a rolling
// upgrade, servers of several releases form one ensemble, and a new one may pass a request
// on to an old one. So the oldest server that is known decides.
func (c *Core) learn(r release, by evidence) {
	server := c.cfg.Servers[c.current]
	if known, ok := c.oldServers[server]; ok {
		r, by = min(r, known.release), min(by, known.by)
	}
	if c.oldServers == nil {
		c.oldServers = make(map[string]oldServer)
	}
	c.oldServers[server] = oldServer{r, by}
	c.updateRelease()
}

// updateRelease finds the oldest server.
func (c *Core) updateRelease() {
	c.release = newest
	for _, s := range c.oldServers {
		c.release = min(c.release, s.release)
	}
}

// forgetOldServers forgets what the next connection cannot find out without harm; see
// askRelease.
func (c *Core) forgetOldServers() {
	maps.DeleteFunc(c.oldServers, func(_ string, s oldServer) bool { return s.release > release34 || s.by == suspected })
	c.endings = endings{}
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
	c.learn(call.Op.since()-1, answered)
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

// endings counts connections that ended without an answer to requests of newer releases.
type endings struct {
	count int // consecutive ones
	// op is one of those requests. Another one does not disprove the suspicion: a new server
	// answers reads itself, and passes writes on to its leader.
	op wire.OpCode
}

// answered notes that a request of a newer release was answered.
func (e *endings) answered(code wire.OpCode) {
	if e.count > 0 && e.op == code {
		*e = endings{}
	}
}

// connectionEnded notes that the server, or the network, has ended the connection. Some
// servers close it without an answer to a request that they do not know.
func (c *Core) connectionEnded() {
	first := newest + 1
	for call := c.pending.first; call != nil; call = call.next {
		if s := call.Op.since(); s > release34 && s < first {
			first, c.endings.op = s, call.Op.Code
		}
	}
	if first > newest {
		return
	}
	if c.endings.count++; c.endings.count >= maxEndings {
		c.endings = endings{}
		c.learn(first-1, suspected)
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
	return c.release < newest && o.Code != wire.OpCreate2 && o.since() > c.release
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

// releaseAnswered takes the answer to askRelease. A new server may still belong to an
// ensemble of old ones that close connections, so it does not disprove a suspicion.
func (c *Core) releaseAnswered(code wire.ErrCode) {
	server := c.cfg.Servers[c.current]
	switch {
	case code == wire.ErrNoNode:
		c.learn(release34, answered)
	case code == wire.ErrOK && c.oldServers[server] == (oldServer{release34, answered}):
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
