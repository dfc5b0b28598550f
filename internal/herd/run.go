package herd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zklock/zklock/zk"
)

// cleanTime bounds the removal of the znodes of a run.
const cleanTime = 10 * time.Second

// overtime is how many times its share an experiment may take before it is ended
// from outside: a herd may be long in its setting up.
const overtime = 3

// plan is one experiment to come.
type plan struct {
	recipe  Recipe
	waiters int
}

// weight is the share of the budget that a plan gets, compared with others.
func (p plan) weight() time.Duration { return time.Duration(p.waiters + 10) }

// plans returns all experiments, few waiters first, so that a budget that is too
// small leaves out the same end of every recipe.
func (c *Config) plans() (all []plan) {
	for _, n := range c.Waiters {
		for _, r := range c.Recipes {
			all = append(all, plan{r, n})
		}
	}
	return all
}

// Run runs every recipe with every number of waiters and returns a row for each,
// whatever became of it: see Row.Err. Its own error is for a configuration that
// makes no sense, servers that can't be had, and the end of ctx; the rows found
// until then are returned as well. The servers are left as they were.
func Run(ctx context.Context, cfg Config) (rows []Row, err error) {
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
	// What is left goes even if ctx is over.
	defer func() { err = errors.Join(err, clean(context.WithoutCancel(ctx), control.client, c.Root)) }()
	budget, cancel := context.WithTimeout(ctx, c.Budget)
	defer cancel()
	end := time.Now().Add(c.Budget)
	plans := c.plans()
	rest := time.Duration(0)
	for _, p := range plans {
		rest += p.weight()
	}
	for i, p := range plans {
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

// experiment runs one trial on sessions of its own.
func experiment(ctx context.Context, cfg *Config, p plan, path string, control *zk.Client, slice time.Duration) Row {
	row := Row{Recipe: p.recipe, Waiters: p.waiters}
	whole := ctx
	ctx, cancel := context.WithTimeout(ctx, overtime*slice)
	defer cancel()
	row.Err = func() error {
		contenders := p.waiters + 1
		asked := cfg.sessions(contenders)
		sessions, err := dialSessions(ctx, cfg, asked)
		defer func() { closeSessions(sessions) }()
		row.Sessions = len(sessions)
		if err != nil && (cfg.Sessions > 0 || len(sessions) < 2 || ctx.Err() != nil) {
			return err
		}
		if len(sessions) < contenders {
			row.note("%d contenders share %d sessions, in each of which their watches of one znode are one", contenders, len(sessions))
		}
		if err := makeNode(ctx, control, path); err != nil {
			return err
		}
		t := newTrial(p.recipe, path, sessions, contenders)
		return t.run(ctx, cfg.Releases, slice, &row)
	}()
	if row.Err == nil || ctx.Err() == nil {
		return row
	}
	// The time was over: that is an error only if nothing was counted.
	switch {
	case row.Releases > 0:
		row.note("%d of %d releases in its time", row.Releases, cfg.Releases)
		row.Err = nil
	case whole.Err() != nil:
		row.Err = ErrBudget
	default:
		row.Err = fmt.Errorf("%w (its share was %v)", ErrBudget, (overtime * slice).Round(time.Millisecond))
	}
	return row
}

// makeNode makes a znode that the servers remove some time after its last child, if
// they can.
func makeNode(ctx context.Context, c *zk.Client, path string) error {
	_, _, err := c.Create(ctx, path, []byte{}, nil, zk.ModeContainer)
	if errors.Is(err, zk.ErrUnimplemented) {
		_, _, err = c.Create(ctx, path, []byte{}, nil, zk.ModePersistent)
	}
	return err
}

// clean removes a znode with its children and theirs.
func clean(ctx context.Context, c *zk.Client, root string) error {
	ctx, cancel := context.WithTimeout(ctx, cleanTime)
	defer cancel()
	children, _, err := c.Children(ctx, root)
	for _, child := range children {
		if err := clean(ctx, c, root+"/"+child); err != nil {
			return err
		}
	}
	if err == nil {
		err = c.Delete(ctx, root, -1)
	}
	if errors.Is(err, zk.ErrNoNode) {
		return nil // the servers have collected it
	}
	return err
}
