// Package deadline decides when a command has to end so that it is dead before
// its lock can belong to anybody else.
//
// The decision is a step function over readings of a clock and of the hold, so
// that a table can test what no machine would ever repeat.
package deadline

import (
	"fmt"
	"time"
)

// Limits of the margin, see [New].
const (
	minMargin = 20 * time.Millisecond
	maxMargin = 500 * time.Millisecond
)

// DefaultKillAfter is the grace between TERM and KILL for session timeouts
// from 16 seconds on; a shorter one gets an eighth of itself.
const DefaultKillAfter = 2 * time.Second

// graceShare is the part of the session timeout that the grace may take at
// most: more, and a heartbeat or two that are late would end the command.
const graceShare = 8

// Plan says how long before a hold's deadline things happen. Make one with New.
type Plan struct {
	KillAfter time.Duration // from TERM to KILL
	Margin    time.Duration // from KILL to the deadline
	Look      time.Duration // longest time between two looks at the hold
}

// New returns the plan for a session timeout. killAfter 0 means the default.
// The margin is what scheduling and the kernel's own killing may take: a
// fortieth of the session timeout within 20 to 500 milliseconds.
func New(session, killAfter time.Duration) (Plan, error) {
	most := session / graceShare
	if killAfter == 0 {
		killAfter = min(DefaultKillAfter, most)
	}
	if killAfter < 0 {
		return Plan{}, fmt.Errorf("kill-after is %v: give a time from 0 on", killAfter)
	}
	if killAfter > most {
		return Plan{}, fmt.Errorf("kill-after %v is more than an eighth of the session timeout %v: raise the session timeout to %v or more",
			killAfter, session, killAfter*graceShare)
	}
	return Plan{
		KillAfter: killAfter,
		Margin:    min(max(session/40, minMargin), maxMargin),
		Look:      min(session/16, time.Second),
	}, nil
}

// Action is what Step wants done now.
type Action int

// The actions, in the order in which they can come.
const (
	Wait Action = iota // nothing until the time that Step returned
	Term               // ask the whole process group to end
	Kill               // kill the whole process group
)

// String names the action.
func (a Action) String() string {
	switch a {
	case Term:
		return "term"
	case Kill:
		return "kill"
	}
	return "wait"
}

// Hold is one look at a hold.
type Hold struct {
	Remaining time.Duration // until the local deadline; meaningless if Lost
	Lost      bool          // the hold has ended by itself
}

// Core follows one command. Make one with Begin; for one goroutine.
type Core struct {
	plan     Plan
	deadline time.Duration // the last one seen; a lost hold tells none
	killAt   time.Duration // once TERM went out
	phase    Action        // the last action other than Wait
}

// Begin returns the core for a command that starts now under a hold.
func (p Plan) Begin(now time.Duration, h Hold) *Core {
	return &Core{plan: p, deadline: now + h.Remaining}
}

// Deadline is the last deadline seen, on the clock of Step's now.
func (c *Core) Deadline() time.Duration { return c.deadline }

// Ending reports whether TERM or KILL was asked for.
func (c *Core) Ending() bool { return c.phase != Wait }

// Killing reports whether KILL was asked for.
func (c *Core) Killing() bool { return c.phase == Kill }

// Step takes one look and says what to do, and when to look again at the
// latest. Each of Term and Kill is asked for once. A deadline that moves on
// after Term does not take the Term back: the command was already told.
func (c *Core) Step(now time.Duration, h Hold) (Action, time.Duration) {
	if !h.Lost {
		c.deadline = now + h.Remaining
	}
	killBy := c.deadline - c.plan.Margin
	switch {
	case c.phase == Kill:
		return Wait, now + c.plan.Look
	// A hold that is lost ahead of its deadline was taken away: somebody else may
	// have the lock by now, so there is no time for a TERM.
	case h.Lost, now >= killBy, c.phase == Term && now >= c.killAt:
		c.phase = Kill
		return Kill, now + c.plan.Look
	case c.phase == Term:
		return Wait, min(c.killAt, killBy)
	case now >= killBy-c.plan.KillAfter:
		c.phase = Term
		c.killAt = min(now+c.plan.KillAfter, killBy)
		return Term, c.killAt
	}
	return Wait, min(killBy-c.plan.KillAfter, now+c.plan.Look)
}
