package sim

import "time"

// faultKind is a kind of fault.
type faultKind int

const (
	// Faults of a link or its messages.
	cutFault      faultKind = iota // a connection breaks
	blockFault                     // no byte passes in one direction or both
	flapFault                      // the link goes down and up repeatedly
	slowFault                      // messages take longer
	trickleFault                   // a few bytes pass at a time
	refuseFault                    // no connection can be opened
	garbageFault                   // the server sends an invalid frame
	loseRequest                    // a request is lost
	loseAnswer                     // a request is applied, and its answer is lost
	loseHandshake                  // the handshake of a session, or its answer, is lost
	followerCut                    // the client's follower is cut off from its leader
	isolation                      // the next holder is cut off, and continues to hold
	// Faults of a process and its machine.
	pauseFault     // a client process is stopped
	newsPause      // a client process is stopped between two notices
	suspendFault   // a client's machine is suspended
	slewFault      // a client's clock changes its rate
	killFault      // a client process, or its machine, dies
	closeFault     // a client closes
	rollingRestart // one client after another closes or dies
	outage         // all machines lose power at once
	// Faults of the server.
	serverKill
	serverPower
	serverPause
	diskStall
	diskError
	diskFull
	bitFlip
	wallJump
	hostileFrames // a client sends invalid frames
	// Changes by operators.
	operatorTouch   // an operator sets a znode's data
	operatorStray   // an operator creates a znode that is not an entry
	operatorForeign // a client of another library enqueues
	operatorJump    // a queue's sequence numbers jump near their limit
	operatorDelete
	operatorSweep  // deletes a whole lock with its parents
	operatorExpire // closes a client's session
	operatorACL    // denies access to all clients for a while
	faultKinds
)

func (k faultKind) String() string {
	return [...]string{"cut", "block", "flap", "slow", "trickle", "refuse", "garbage", "lose request", "lose answer", "lose handshake",
		"follower cut off", "isolation", "pause", "pause amid news", "suspend", "clock rate", "kill", "close", "rolling restart", "outage",
		"server kill", "power loss", "server pause", "disk stall", "disk error", "disk full", "bit flip", "wall clock", "hostile frames",
		"touch", "stray", "foreign entry", "sequence jump", "delete", "sweep", "expire", "acl"}[k]
}

// weights returns the relative frequencies of the kinds. Broken connections and lost answers
// find most bugs. If the server were down most of the time, clients would acquire little.
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

// inject injects a fault, at a machine if the kind needs one. A fault without effect does
// not count.
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

// faultTime draws how long a fault lasts: up to three timeouts.
func (w *World) faultTime() time.Duration {
	d := w.upTo(3 * w.cfg.Timeout)
	if w.oneIn(2) {
		d /= 8
	}
	return d
}
