package session

import (
	"slices"
	"time"
)

// Limits of the interval between two probes for a server with a quorum, as in Java's
// ClientCnxn.
const (
	minProbeInterval = 100 * time.Millisecond
	maxProbeInterval = time.Minute
)

// prober searches for a server with a quorum while the connection is to a read-only
// one.
type prober struct {
	at       time.Duration
	interval time.Duration
	asking   bool   // the driver is asking a server
	server   string // the server asked last
}

// start begins the search.
func (p *prober) start(now time.Duration) {
	*p = prober{at: now + minProbeInterval, interval: minProbeInterval}
}

// next returns when to ask the next server. ok is false if none is due.
func (p *prober) next(c *Core) (time.Duration, bool) {
	return p.at, c.wantsReadWrite() && !p.asking
}

// wantsReadWrite reports whether another server would be better. With one server
// there is no other: it closes the connection itself when it regains its quorum.
func (c *Core) wantsReadWrite() bool {
	return c.phase == connected && c.readOnly && !c.closing && len(c.cfg.Servers) > 1
}

// Probe is a request to the driver to find out, over a separate connection, whether a
// server has a quorum. Such a server answers the word "isro" with "rw".
type Probe struct {
	Gen      uint64 // the connection to give up if it has
	Server   string
	Deadline time.Duration
}

// WantProbe returns the server to ask now, if one is due. The driver reports the
// outcome with Probed.
func (c *Core) WantProbe(now time.Duration) (Probe, bool) {
	p := &c.probe
	if !c.wantsReadWrite() || p.asking || now < p.at {
		return Probe{}, false
	}
	// If the server asked last is gone, this is the first one.
	i := (slices.Index(c.cfg.Servers, p.server) + 1) % len(c.cfg.Servers)
	if i == c.current { // skip the server in use
		i = (i + 1) % len(c.cfg.Servers)
	}
	p.asking, p.server = true, c.cfg.Servers[i]
	return Probe{Gen: c.gen, Server: p.server, Deadline: now + c.dialTimeout()}, true
}

// Probed reports the result of a probe. If the server has a quorum, the core drops
// the present connection and connects to that server at once.
func (c *Core) Probed(gen uint64, readWrite bool, now time.Duration) {
	p := &c.probe
	if gen != c.Live() || !p.asking {
		return
	}
	p.asking = false
	if !c.wantsReadWrite() {
		return
	}
	server := slices.Index(c.cfg.Servers, p.server)
	if !readWrite || server < 0 { // SetServers may have removed it
		p.interval = min(2*p.interval, maxProbeInterval)
		p.at = now + p.interval
		return
	}
	c.dropConnection(ErrReadWriteFound, now)
	c.next, c.dialAt = server, now
}
