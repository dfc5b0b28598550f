package sim

import "time"

// connectWait is the time in which a client must reconnect after all faults: the longest
// pause between two dials, the dial, and the server's restart.
const connectWait = 11 * time.Second

// refusedAgain is more than the time after which the lock core repeats a denied request.
const refusedAgain = 31 * time.Second

// heal ends all faults. From now on, no actor begins an acquire, and every waiter must be
// granted.
func (w *World) heal() {
	w.note("the world heals")
	w.healing, w.healedAt = true, w.now
	w.disturb()
	w.server.heal()
	w.after(0, w.permitAccess)
	for _, m := range w.machines {
		w.healMachine(m)
	}
	w.after(20*time.Millisecond, w.supervise)
}

// heal repairs the server and its disk, and starts the server if it is down.
func (s *server) heal() {
	s.stall = 0
	s.disk.SetFault(nil)
	s.disk.SetLimit(0)
	s.fullUntil = 0
	s.resume()
	if s.up && s.busy {
		s.commit()
	}
	s.world.after(s.world.upTo(200*time.Millisecond), s.boot)
}

// healMachine repairs a machine's link and process. It cuts a damaged connection at both
// ends, so that the client need not detect it by silence.
func (w *World) healMachine(m *machine) {
	m.loseOp, m.isolate, m.garbage, m.stopIn = 0, 0, 0, 0
	stuck := m.link.repair(w.now)
	w.rejoin(m, false)
	if !m.running() {
		return
	}
	c := m.client
	if c.paused {
		c.resume()
	}
	if k := c.conn; k != nil && (stuck || k.broken[up] || k.broken[down] || k.loseAnswer || k.gone) {
		k.cut(true, true)
	}
	for _, a := range c.actors {
		if a.state == holding {
			a.after(w.upTo(20*time.Millisecond), a.release)
		}
	}
}

// supervise checks that all acquires and releases end in time, and then closes the clients.
func (w *World) supervise() {
	w.after(20*time.Millisecond, w.supervise)
	if w.reached == 0 {
		if w.allConnected() {
			w.reached = w.now
			w.note("all are connected")
		} else if w.now > w.healedAt+connectWait+2*w.cfg.Timeout {
			w.fail("a client is not connected %v after all faults ended", w.now-w.healedAt)
		}
		return
	}
	limit := w.reached + 2*w.cfg.Timeout + 4*w.cfg.LockDelay + 2*time.Second
	for _, l := range w.locks {
		if w.banned(l, w.healedAt) {
			limit += refusedAgain
			break
		}
	}
	switch waiting, left := w.unfinished(); {
	case w.closing:
		w.superviseClose()
	case waiting != "" && w.now > limit:
		w.fail("%s is not served %v after all faults ended", waiting, w.now-w.reached)
	case left != "" && w.now > limit+w.cfg.Timeout:
		w.fail("%s is left %v after all faults ended", left, w.now-w.reached)
	case waiting == "" && left == "":
		w.note("all is quiet")
		w.checkRemaining()
		w.closing = true
		w.healedAt = w.now
		for c := range w.clients {
			c.run(startWork, c.shut)
		}
	}
}

// superviseClose checks that the clients and their sessions end.
func (w *World) superviseClose() {
	n := w.server.tree.SessionCount()
	for range w.clients {
		n++
	}
	switch {
	case n == 0:
		w.done = true
	case w.now > w.healedAt+2*w.cfg.Timeout+10*time.Second:
		w.fail("%d clients or sessions are left %v after they were closed", n, w.now-w.healedAt)
	}
}

// allConnected reports whether the server is up and all clients are connected.
func (w *World) allConnected() bool {
	if !w.server.up {
		return false
	}
	for c := range w.clients {
		if !c.connected() && !c.closing {
			return false
		}
	}
	return true
}

// unfinished returns a client that still waits for a lock or holds one, and a znode that is
// left. A znode that exists only in a client's state counts too.
func (w *World) unfinished() (waiting, left string) {
	for c := range w.clients {
		for _, a := range c.actors {
			if a.state != idle && !c.closing {
				waiting = c.name
			}
		}
		if !c.core.Idle() {
			left = "something of " + c.name
		}
	}
	if w.server.up {
		for _, p := range w.entries() {
			left = p
		}
		if n := w.server.tree.Counts().Ephemerals; n > 0 && left == "" {
			left = "an ephemeral znode"
		}
	}
	return waiting, left
}

// checkMinimum fails a history in which too little happened.
func (w *World) checkMinimum() {
	if w.cfg.NoFaults || w.cfg.Only != nil || w.err != nil {
		return
	}
	// If the sequence numbers of the only lock are exhausted, acquires fail.
	if w.Stats.Acquired+w.Stats.Exhausted < 10 || w.Stats.Faults < 10 || w.Stats.Records < 100 {
		w.fail("too little happened: %+v", w.Stats)
	}
}
