package bench

import (
	"fmt"
	"time"

	"github.com/zklock/zklock/zk"
)

// Limits of a [HerdConfig]. They prevent that a typing error overloads a machine: every
// session costs a connection, and memory on both sides.
const (
	MaxWaiters  = 10_000
	MaxReleases = 100_000
)

// defaultReleases is the number of releases of an experiment, if there is time for them.
const defaultReleases = 20

// HerdConfig says what to run, and where.
type HerdConfig struct {
	Servers string     // as for zk.Dial
	Options zk.Options // of every session
	// Root is the parent of the experiments' znodes. RunHerd creates it, and removes it
	// with everything below it. It must not exist, but its parent must.
	Root string

	Recipes  []Recipe // nil means all
	Waiters  []int    // numbers of waiters, one experiment each, from 1 to MaxWaiters
	Releases int      // largest number of releases that an experiment counts; 0 means 20
	// Sessions is how many sessions the contenders share. 0 means one for each contender,
	// but at most MaxSessions, and at most as many as the servers permit.
	Sessions int
	// MaxSessions bounds the number of sessions if Sessions is 0; 0 means no limit.
	MaxSessions int
	// Connect bounds the time to open a session; 0 means the session timeout.
	Connect time.Duration
	// Budget bounds the whole run, except for the cleanup, which takes at most some
	// seconds; 0 means a minute.
	Budget time.Duration
	// Progress, unless nil, is called with each completed row.
	Progress func(Row)
}

// check returns a copy with defaults in place of zero values, or an error.
func (c HerdConfig) check() (*HerdConfig, error) {
	if c.Releases == 0 {
		c.Releases = defaultReleases
	}
	if c.Budget == 0 {
		c.Budget = time.Minute
	}
	if c.Recipes == nil {
		c.Recipes = Recipes()
	}
	switch {
	case len(c.Waiters) == 0 || len(c.Recipes) == 0:
		return nil, fmt.Errorf("%w: give a recipe and a number of waiters", ErrConfig)
	case c.Releases < 1 || c.Releases > MaxReleases:
		return nil, fmt.Errorf("%w: %d releases are not between 1 and %d", ErrConfig, c.Releases, MaxReleases)
	case c.Budget < 0:
		return nil, fmt.Errorf("%w: the budget %v is negative", ErrConfig, c.Budget)
	case c.Sessions < 0 || c.MaxSessions < 0:
		return nil, fmt.Errorf("%w: a number of sessions is negative", ErrConfig)
	}
	for _, n := range c.Waiters {
		if n < 1 || n > MaxWaiters {
			return nil, fmt.Errorf("%w: %d waiters are not between 1 and %d", ErrConfig, n, MaxWaiters)
		}
	}
	return &c, nil
}

// sessions returns the number of sessions for n contenders, at most one for each.
func (c *HerdConfig) sessions(n int) int {
	switch {
	case c.Sessions > 0:
		return min(c.Sessions, n)
	case c.MaxSessions > 0:
		return min(c.MaxSessions, n)
	}
	return n
}
