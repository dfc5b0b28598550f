package sim

import "time"

// injectProcess makes a fault of a client's process or its machine.
func (w *World) injectProcess(kind faultKind, m *machine) bool {
	c := m.client
	switch kind {
	case pauseFault:
		c.pause(w.aWhile())
	case newsPause:
		m.stopIn = 1 + w.rng.IntN(60)
	case suspendFault:
		c.suspend(w.aWhile())
	case slewFault:
		if w.cfg.Drift == 0 {
			return false
		}
		c.slew(w.rng.Int64N(2*w.cfg.Drift+1) - w.cfg.Drift)
	case killFault:
		m.kill(w.oneIn(3))
	case closeFault:
		w.closeClient(m)
	}
	return true
}

// closeClient closes a client in good order; another takes its place.
func (w *World) closeClient(m *machine) {
	c := m.client
	c.run(startWork, func() {
		if !c.closing {
			c.shut()
		}
	})
	w.after(w.cfg.Timeout+w.aWhile(), func() { w.reopen(m) })
}

// reopen begins a new process on a machine whose client was closed; it waits
// while the closing takes its time.
func (w *World) reopen(m *machine) {
	if m.running() && m.client.closing && !w.closing {
		w.after(w.cfg.Timeout, func() { w.reopen(m) })
		return
	}
	m.start()
}

// restartAll replaces one client after another, as an upgrade does.
func (w *World) restartAll() bool {
	at := time.Duration(0)
	for _, m := range w.machines {
		kill, power := w.oneIn(2), w.oneIn(3)
		w.after(at, func() {
			switch {
			case w.healing || !m.running():
			case kill:
				m.kill(power)
			default:
				w.closeClient(m)
			}
		})
		at += w.upTo(w.cfg.Timeout)
	}
	return true
}

// powerCut takes the power from the server and from most clients at once.
func (w *World) powerCut() bool {
	for _, m := range w.machines {
		if m.running() && !w.cfg.Alone && !w.oneIn(4) {
			m.kill(true)
		}
	}
	if w.server.up {
		w.server.crash(true)
		w.after(w.upTo(w.cfg.Timeout), w.server.boot)
	}
	return true
}

// stopAmid stops a process in the midst of what it is told, if that is planned.
func (m *machine) stopAmid() bool {
	if m.stopIn == 0 || m.world.healing {
		return false
	}
	if m.stopIn--; m.stopIn > 0 {
		return false
	}
	m.world.disturb()
	m.world.note("stopped amid news: machine %d", m.n)
	m.client.pause(m.world.aWhile())
	return true
}

// suspend lets a client's machine sleep. Its process stands still, nothing gets
// to it, and its timers do not count the time that passes; its clock does.
func (c *client) suspend(d time.Duration) {
	w := c.world
	if c.paused {
		return
	}
	l := &c.machine.link
	for dir := range l.blocked {
		l.blocked[dir] = max(l.blocked[dir], w.now+d)
	}
	c.pause(d)
	c.asleep, c.wakes = w.now, w.now+d
	// The session's timer is left alone if it is early, as its shell believes this
	// one to be; the lock core's is set again with every step.
	c.sessAlarm.delay(w, w.now, d, false)
	c.coreAlarm.delay(w, w.now, d, true)
}

// woken sets right the timers of a machine whose sleep was cut short: they are late
// by as much as it slept.
func (c *client) woken() {
	w := c.world
	left := c.wakes - w.now
	c.wakes = 0
	if left <= 0 {
		return
	}
	c.sessAlarm.delay(w, c.asleep, w.now-c.asleep, false)
	if c.coreAlarm.set {
		c.coreAlarm.at -= left
		c.coreAlarm.plan(w, c.coreAlarm.at)
	}
}

// slew lets the process's clock run at another rate from now on. What timers it
// has are set again by it.
func (c *client) slew(ppm int64) {
	c.clock.slew(c.world.now, ppm)
	c.note("clock %+d ppm", ppm)
	c.sessAlarm.drop()
	c.coreAlarm.drop()
	c.arm()
}
