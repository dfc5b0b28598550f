package hold

import (
	"fmt"
	"time"
)

// This file decides when a command has to end so that it is dead before another client
// can hold its lock.
//
// The decision is a step function of the time and of the state of the hold, so that
// tables can test timings that no machine reproduces.

// Limits of the margin, see defaultPlan.
const (
	minMargin = 20 * time.Millisecond
	maxMargin = 500 * time.Millisecond
)

// DefaultKillAfter is the default time from TERM to KILL for session timeouts of at least
// 16 seconds. For a shorter session timeout, the default is an eighth of it.
const DefaultKillAfter = 2 * time.Second

// killAfterShare limits the time from TERM to KILL to this part of the session timeout. If
// it were longer, one or two late heartbeats would end the command.
const killAfterShare = 8

// Plan says how long before the deadline of a hold the command gets its signals. newPlan
// and defaultPlan make it.
type Plan struct {
	KillAfter time.Duration // from TERM to KILL
	Margin    time.Duration // from KILL to the deadline
	Interval  time.Duration // longest time between two checks of the hold
}

// newPlan returns the plan for a session timeout with --kill-after.
func newPlan(session, killAfter time.Duration) (Plan, error) {
	if killAfter < 0 {
		return Plan{}, fmt.Errorf("%v is negative: give a time from 0 on", killAfter)
	}
	if most := session / killAfterShare; killAfter > most {
		return Plan{}, fmt.Errorf("%v is more than an eighth of the session timeout of %v: give at most %v, or raise the session timeout",
			killAfter, session, most)
	}
	plan := defaultPlan(session)
	plan.KillAfter = killAfter
	return plan, nil
}

// defaultPlan returns the plan for a session timeout without --kill-after.
// The margin covers delays of the scheduler and of the kernel that kills the processes: a
// fortieth of the session timeout, at least 20 and at most 500 milliseconds.
func defaultPlan(session time.Duration) Plan {
	return Plan{
		KillAfter: min(DefaultKillAfter, session/killAfterShare),
		Margin:    min(max(session/40, minMargin), maxMargin),
		Interval:  min(session/16, time.Second),
	}
}

// within returns the plan p, shortened if necessary for the session timeout that a server
// granted. 0 means that there is no session, and changes nothing.
func (p Plan) within(session time.Duration) Plan {
	if session <= 0 {
		return p
	}
	limit := defaultPlan(session)
	return Plan{
		KillAfter: min(p.KillAfter, session/killAfterShare),
		Margin:    min(p.Margin, limit.Margin),
		Interval:  min(p.Interval, limit.Interval),
	}
}

// Action is what the caller of Step must do now.
type Action int

// The actions, in the order in which they can come.
const (
	Wait Action = iota // nothing until the time that Step returned
	Term               // send TERM to the whole process group
	Kill               // send KILL to the whole process group
)

// Hold is the state of a hold at one moment.
type Hold struct {
	Remaining time.Duration // until the local deadline; meaningless if Lost
	Lost      bool          // the hold was lost
}

// Core decides about one command. [Plan.Begin] makes it. It belongs to one goroutine.
type Core struct {
	plan     Plan
	deadline time.Duration // the last known one; a lost hold has none
	killAt   time.Duration // set when TERM is due
	phase    Action        // the last action other than Wait
}

// Begin returns the core for a command that starts now under a hold.
func (p Plan) Begin(now time.Duration, h Hold) *Core {
	return &Core{plan: p, deadline: now + h.Remaining}
}

// Deadline returns the last known deadline, on the clock of Step's now.
func (c *Core) Deadline() time.Duration { return c.deadline }

// Ending reports whether Step has returned Term or Kill.
func (c *Core) Ending() bool { return c.phase != Wait }

// Killing reports whether Step has returned Kill.
func (c *Core) Killing() bool { return c.phase == Kill }

// Step returns what to do now, and the latest time of the next call. It returns Term and
// Kill once each. If the deadline moves after Term, Kill still follows, because the
// command already has the TERM.
func (c *Core) Step(now time.Duration, h Hold) (Action, time.Duration) {
	if !h.Lost {
		c.deadline = now + h.Remaining
	}
	killBy := c.deadline - c.plan.Margin
	switch {
	case c.phase == Kill:
		return Wait, now + c.plan.Interval
	// If a hold is lost before its deadline, another client may already hold the lock,
	// so there is no time for TERM.
	case h.Lost, now >= killBy, c.phase == Term && now >= c.killAt:
		c.phase = Kill
		return Kill, now + c.plan.Interval
	case c.phase == Term:
		return Wait, min(c.killAt, killBy, now+c.plan.Interval)
	case now >= killBy-c.plan.KillAfter:
		c.phase = Term
		c.killAt = min(now+c.plan.KillAfter, killBy)
		return Term, min(c.killAt, now+c.plan.Interval)
	}
	return Wait, min(killBy-c.plan.KillAfter, now+c.plan.Interval)
}
