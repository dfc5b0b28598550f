package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/zklock/zklock/zk"
)

// cleanTime and the session timeout bound the removal of the znodes of a run.
const cleanTime = 10 * time.Second

// overtime is how many times its share of the budget an experiment may take before it is
// ended, because the setup of a herd can take long.
const overtime = 3

// plan is one planned experiment.
type plan struct {
	recipe  Recipe
	waiters int
}

// weight is the relative share of the budget of a plan. Up to a hundred waiters, most of
// the time does not depend on their number.
func (p plan) weight() time.Duration { return time.Duration(p.waiters + 100) }

// plans returns all experiments, few waiters first, so that a small budget omits the same
// experiments of every recipe.
func (c *HerdConfig) plans() (all []plan) {
	for _, n := range c.Waiters {
		for _, r := range c.Recipes {
			all = append(all, plan{r, n})
		}
	}
	return all
}

// RunHerd runs every recipe with every number of waiters and returns a row for each, with
// the error of a failed experiment in Row.Err. RunHerd itself fails if the configuration is
// invalid, if no server can be reached, or if ctx ends; it then also returns the completed
// rows. It removes everything that it created on the servers.
func RunHerd(ctx context.Context, cfg HerdConfig) (rows []Row, err error) {
	c, err := cfg.check()
	if err != nil {
		return nil, err
	}
	control, err := dialSession(ctx, c)
	if err != nil {
		return nil, err
	}
	defer closeSessions([]*session{control})
	if err := makeNode(ctx, control.client, c.Root); err != nil {
		return nil, err
	}
	defer func() {
		// The cleanup runs even if ctx is done.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(cleanTime, control.client.SessionTimeout()))
		defer cancel()
		left := control.client.DeleteAll(ctx, c.Root)
		for errors.Is(left, zk.ErrConnectionLost) && ctx.Err() == nil {
			left = control.client.DeleteAll(ctx, c.Root) // which waits for the next connection
		}
		err = errors.Join(err, left)
	}()
	// The budget does not bound the control session, which cleans up afterwards.
	budget, cancel := context.WithTimeout(ctx, c.Budget)
	defer cancel()
	end := time.Now().Add(c.Budget)
	plans := c.plans()
	rest := time.Duration(0)
	for _, p := range plans {
		rest += p.weight()
	}
	for i, p := range plans {
		// Later experiments share the time that this one does not use.
		slice := max(time.Until(end), 0) / rest * p.weight()
		rest -= p.weight()
		row := experiment(budget, c, p, fmt.Sprintf("%s/%03d-%s", c.Root, i, p.recipe.Name), control.client, slice)
		if ctx.Err() != nil {
			return rows, ctx.Err()
		}
		rows = append(rows, row)
		if c.Progress != nil {
			c.Progress(row)
		}
	}
	return rows, nil
}

// experiment runs a plan, and notes in its row if the time was too short.
func experiment(ctx context.Context, cfg *HerdConfig, p plan, path string, control *zk.Client, slice time.Duration) Row {
	ctx, cancel := context.WithTimeout(ctx, overtime*slice)
	defer cancel()
	row := Row{Recipe: p.recipe, Waiters: p.waiters}
	row.Err = onSessions(ctx, cfg, &row, path, control, slice)
	if ctx.Err() != nil && row.Err != nil {
		// The end of the time is an error only if nothing was counted.
		row.Err = nil
		if row.Releases == 0 {
			row.Err = ErrBudget
		}
	}
	if row.Err == nil && row.Releases < cfg.Releases {
		row.note("%d of %d releases in its share of the time", row.Releases, cfg.Releases)
	}
	return row
}

// onSessions runs a row's trial on new sessions, and ends them before it returns. New
// sessions have no pending events of the previous recipe.
func onSessions(ctx context.Context, cfg *HerdConfig, row *Row, path string, control *zk.Client, slice time.Duration) error {
	runtime.GC() // otherwise, this experiment would pay for the garbage of the previous one
	contenders := row.Waiters + 1
	sessions, err := dialSessions(ctx, cfg, cfg.sessions(contenders))
	defer func() { closeSessions(sessions) }()
	row.Sessions = len(sessions)
	// The default number of sessions may be reduced to those that could be opened, but the
	// holder and one waiter need separate sessions.
	if err != nil && (cfg.Sessions > 0 || len(sessions) < 2 || ctx.Err() != nil) {
		return err
	}
	if len(sessions) < contenders {
		row.note("%d contenders share %d sessions, in each of which their watches of one znode are one", contenders, len(sessions))
	}
	if err := makeNode(ctx, control, path); err != nil {
		return err
	}
	return newTrial(row.Recipe, path, sessions, contenders).run(ctx, cfg.Releases, slice, row)
}

// makeNode creates a container, which the servers remove some time after its last child. If
// the servers support no containers, it creates a persistent znode.
func makeNode(ctx context.Context, c *zk.Client, path string) error {
	_, _, err := c.Create(ctx, path, []byte{}, nil, zk.ModeContainer)
	if errors.Is(err, zk.ErrUnimplemented) {
		_, _, err = c.Create(ctx, path, []byte{}, nil, zk.ModePersistent)
	}
	return err
}
