package sim

import "time"

// faultKind is a kind of fault.
type faultKind int

const (
	// Of a link, or of what goes over it.
	cutFault      faultKind = iota // a connection breaks
	blockFault                     // nothing gets through, both ways or one
	flapFault                      // the link goes down and up again and again
	slowFault                      // all takes longer
	trickleFault                   // few bytes at a time get through
	refuseFault                    // no connection can be made
	garbageFault                   // the server says what it must not
	loseRequest                    // a request is lost on its way
	loseAnswer                     // a request is carried out, its answer lost
	loseHandshake                  // the same of the request to begin or resume a session
	followerCut                    // the follower between is cut off from its leader
	isolation                      // the next holder is cut off, and continues to hold
	// Of a process and its machine.
	pauseFault     // a client process is stopped
	newsPause      // the same, in the midst of what it is told
	suspendFault   // a client's machine sleeps
	slewFault      // a client's clock runs at another rate from now on
	killFault      // a client process, or its machine, dies
	closeFault     // a client is closed in good order
	rollingRestart // one client after another is closed, or dies
	outage         // everything loses power at once
	// Of the server.
	serverKill
	serverPower
	serverPause
	diskStall
	diskError
	diskFull
	bitFlip
	wallJump
	hostileFrames // a client of the server's says what it must not
	// Faults of operators, which may do anything.
	operatorTouch   // an operator sets a znode's data
	operatorStray   // an operator makes a znode that is no contender
	operatorForeign // another library's client joins a queue
	operatorJump    // a queue's sequence numbers come near their limit
	operatorDelete
	operatorSweep  // deletes a whole lock with its parents
	operatorExpire // closes a client's session
	operatorACL    // forbids all to all, for a while
	faultKinds
)

// String names the kind.
func (k faultKind) String() string {
	return [...]string{"cut", "block", "flap", "slow", "trickle", "refuse", "garbage", "lose request", "lose answer", "lose handshake",
		"follower cut off", "isolation", "pause", "pause amid news", "suspend", "clock rate", "kill", "close", "rolling restart", "outage",
		"server kill", "power loss", "server pause", "disk stall", "disk error", "disk full", "bit flip", "wall clock", "hostile frames",
		"touch", "stray", "foreign entry", "sequence jump", "delete", "sweep", "expire", "acl"}[k]
}

// weights are how often each kind happens, against each other. What breaks a
// connection or loses an answer is the most fertile; a server that is down for
// half of the time would leave little else to see.
func weights() [faultKinds]int {
	return [faultKinds]int{
		cutFault: 8, blockFault: 8, flapFault: 2, slowFault: 3, trickleFault: 2, refuseFault: 2, garbageFault: 2,
		loseRequest: 5, loseAnswer: 10, loseHandshake: 3, followerCut: 6, isolation: 8,
		pauseFault: 10, newsPause: 4, suspendFault: 3, slewFault: 2, killFault: 4, closeFault: 3, rollingRestart: 1, outage: 1,
		serverKill: 2, serverPower: 3, serverPause: 3, diskStall: 3, diskError: 2, diskFull: 1, bitFlip: 1, wallJump: 1, hostileFrames: 1,
		operatorTouch: 8, operatorStray: 1, operatorForeign: 4, operatorJump: 6, operatorDelete: 8, operatorSweep: 3, operatorExpire: 3,
		operatorACL: 2,
	}
}

// inject makes a fault of a kind, at a machine if it is about one. Chance may
// have it that there is nothing to break, which does not count.
func (w *World) inject(kind faultKind, m *machine) {
	w.disturb()
	w.note("fault: %v, machine %d", kind, m.n)
	done := false
	switch {
	case kind >= operatorTouch:
		done = w.operate(kind)
	case kind >= serverKill:
		done = w.injectServer(kind)
	case kind == rollingRestart:
		done = w.restartAll()
	case kind == outage:
		done = w.powerCut()
	case kind >= pauseFault:
		done = m.running() && w.injectProcess(kind, m)
	default:
		done = w.injectLink(kind, m)
	}
	if done {
		w.Stats.Faults++
		w.Stats.ByFault[kind]++
	}
}

// aWhile is how long something is amiss: from a moment to three timeouts.
func (w *World) aWhile() time.Duration {
	d := w.upTo(3 * w.cfg.Timeout)
	if w.oneIn(2) {
		d /= 8
	}
	return d
}
