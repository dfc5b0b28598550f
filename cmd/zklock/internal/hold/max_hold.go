package hold

import (
	"time"

	"github.com/zklock/zklock/cmd/zklock/internal/cli"
)

// maxHold is --max-hold. The zero value is no limit.
type maxHold struct {
	limit  time.Duration // 0 means none
	at     time.Duration // when the command gets TERM, on the supervisor's clock
	killAt time.Duration // when the command gets KILL, once it got TERM
	phase  Action        // what the command got last; Wait means nothing
}

// limitHold ends the command when --max-hold has passed, and returns when to check again.
// It does nothing if the command has exited or is ending because of its lock.
func (s *supervisor) limitHold(core *Core) time.Duration {
	m := &s.maxHold
	if m.limit == 0 || m.phase == Kill || s.remains != nil || core.Ending() {
		return forever
	}
	now := s.now()
	if m.at == 0 {
		m.at = now + min(m.limit, forever-now)
	}
	switch {
	case now < m.at:
		return m.at
	case m.phase == Wait:
		m.phase, m.killAt = Term, now+s.plan.KillAfter
		s.stopping = true
		s.cmd.Terminate(m.killAt)
		cli.Warn("the command still runs after %s (--max-hold): ending it", m.limit)
	case now >= m.killAt:
		m.phase = Kill
		s.cmd.Kill()
		return forever
	}
	return m.killAt
}
