package session

import "time"

// The bounds of the time between two looks for a server with a quorum, as in
// Java's ClientCnxn.
const (
	firstProbe = 100 * time.Millisecond
	lastProbe  = time.Minute
)

// prober looks for a full server while the connection is to a read-only one.
type prober struct {
	at     time.Duration
	wait   time.Duration
	under  bool // the driver is asking a server
	server int
}

// start begins looking.
func (p *prober) start(now time.Duration) {
	*p = prober{at: now + firstProbe, wait: firstProbe}
}

// next is when a server is to be asked.
func (p *prober) next(c *Core) (time.Duration, bool) {
	return p.at, c.looking() && !p.under
}

// looking reports whether another server would be better. With one server there
// is no other: it closes the connection when it finds its quorum.
func (c *Core) looking() bool {
	return c.phase == connected && c.readOnly && !c.closing && len(c.cfg.Servers) > 1
}

// Probe asks the driver to find out, over a connection of its own, whether a
// server has a quorum: it answers the word "isro" with "rw".
type Probe struct {
	Gen      uint64 // the connection that would be left
	Server   string
	Deadline time.Duration
}

// WantProbe returns the server to ask now, if one is due. Its outcome goes to
// Probed.
func (c *Core) WantProbe(now time.Duration) (Probe, bool) {
	p := &c.probe
	if !c.looking() || p.under || now < p.at {
		return Probe{}, false
	}
	p.server = (p.server + 1) % len(c.cfg.Servers)
	if p.server == c.current { // the one in use needs no asking
		p.server = (p.server + 1) % len(c.cfg.Servers)
	}
	p.under = true
	return Probe{Gen: c.gen, Server: c.cfg.Servers[p.server], Deadline: now + c.budget()}, true
}

// Probed tells what came of a probe. A server with a quorum is connected to at
// once, at the cost of the present connection.
func (c *Core) Probed(gen uint64, readWrite bool, now time.Duration) {
	p := &c.probe
	if gen != c.Live() || !c.looking() || !p.under {
		return
	}
	p.under = false
	if !readWrite {
		p.wait = min(2*p.wait, lastProbe)
		p.at = now + p.wait
		return
	}
	server := p.server
	c.lose(ErrReadWriteFound, now)
	c.next, c.dialAt = server, now
}
