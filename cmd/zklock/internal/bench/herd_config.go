package bench

import (
	"fmt"
	"time"

	"github.com/zklock/zklock/zk"
)

// Limits of a [Config]. They keep a slip of the finger from taking a machine
// down: every session costs a connection, and memory on both sides of it.
const (
	MaxWaiters  = 10_000
	MaxReleases = 100_000
)

// defaultReleases is how many releases an experiment counts where its time
// allows.
const defaultReleases = 20

// HerdConfig says what to run, and where.
type HerdConfig struct {
	Servers string     // as in zk.Dial
	Options zk.Options // of every session
	// Root is the path below which an experiment has a znode of its own; it is
	// made, and removed with what is left below it, so it must not exist. Its
	// parent must.
	Root string

	Recipes  []Recipe // nil means all
	Waiters  []int    // how many wait, an experiment each; between 1 and MaxWaiters
	Releases int      // how many releases an experiment counts at most; 0 means 20
	// Sessions is how many sessions the contenders share. 0 means one each, but
	// no more than MaxSessions, nor than servers let in.
	Sessions int
	// MaxSessions bounds Sessions where that is 0; 0 means no bound.
	MaxSessions int
	// Connect bounds the beginning of a session; 0 means the session timeout.
	Connect time.Duration
	// Budget bounds the whole run, but for its cleaning up, which takes some
	// seconds at most; 0 means a minute.
	Budget time.Duration
	// Progress, if not nil, is told of each row when it is there.
	Progress func(Row)
}

// check returns a copy with the zero values filled in, or what is wrong.
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

// sessions returns how many sessions n contenders ask for: more than there are
// contenders would only stand by.
func (c *HerdConfig) sessions(n int) int {
	switch {
	case c.Sessions > 0:
		return min(c.Sessions, n)
	case c.MaxSessions > 0:
		return min(c.MaxSessions, n)
	}
	return n
}
