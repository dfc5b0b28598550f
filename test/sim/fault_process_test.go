package sim

import "time"

// injectProcess injects a fault of a client's process or its machine.
func (w *World) injectProcess(kind faultKind, m *machine) bool {
	c := m.client
	switch kind {
	case pauseFault:
		c.pause(w.faultTime())
	case newsPause:
		m.stopIn = 1 + w.rng.IntN(60)
	case suspendFault:
		c.suspend(w.faultTime())
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

// closeClient closes a client. Another one replaces it later.
func (w *World) closeClient(m *machine) {
	c := m.client
	c.run(startWork, func() {
		if !c.closing {
			c.shut()
		}
	})
	w.after(w.cfg.Timeout+w.faultTime(), func() { w.reopen(m) })
}

// reopen starts a new process on a machine after the close of its client.
func (w *World) reopen(m *machine) {
	if m.running() && m.client.closing && !w.closing {
		w.after(w.cfg.Timeout, func() { w.reopen(m) })
		return
	}
	m.start()
}

// restartAll replaces one client after another, like an upgrade.
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

// powerCut cuts the power of the server and of most clients at once.
func (w *World) powerCut() bool {
	for _, m := range w.machines {
		if m.running() && !w.cfg.OneActor && !w.oneIn(4) {
			m.kill(true)
		}
	}
	if w.server.up {
		w.server.crash(true)
		w.after(w.upTo(w.cfg.Timeout), w.server.boot)
	}
	return true
}

// stopAmid stops a process between two notices if a newsPause is due.
func (m *machine) stopAmid() bool {
	if m.stopIn == 0 || m.world.healing {
		return false
	}
	if m.stopIn--; m.stopIn > 0 {
		return false
	}
	m.world.disturb()
	m.world.note("stopped amid news: machine %d", m.n)
	m.client.pause(m.world.faultTime())
	return true
}

// suspend suspends a client's machine. Its process stops, no message arrives, and its
// timers stop. Its clock continues.
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
	c.suspendedAt, c.suspendedUntil = w.now, w.now+d
	// The session's timer is not set again if it seems early enough. The lock core's timer
	// is set again with every step.
	c.sessAlarm.delay(w, w.now, d, false)
	c.coreAlarm.delay(w, w.now, d, true)
}

// correctTimers corrects the timers after a suspend that ended early: they are late by the time
// that the machine was suspended.
func (c *client) correctTimers() {
	w := c.world
	left := c.suspendedUntil - w.now
	c.suspendedUntil = 0
	if left <= 0 {
		return
	}
	c.sessAlarm.delay(w, c.suspendedAt, w.now-c.suspendedAt, false)
	if c.coreAlarm.set {
		c.coreAlarm.at -= left
		c.coreAlarm.plan(w, c.coreAlarm.at)
	}
}

// slew changes the rate of the process's clock and sets its timers again.
func (c *client) slew(ppm int64) {
	c.clock.slew(c.world.now, ppm)
	c.note("clock %+d ppm", ppm)
	c.sessAlarm.drop()
	c.coreAlarm.drop()
	c.arm()
}
