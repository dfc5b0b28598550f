package zkreal

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
)

// Cluster is an ensemble of servers. Its methods may be called from any
// goroutine.
type Cluster struct {
	Nodes []*Node // by id, from 1 on
}

// ConnectString is the addresses of all servers, separated by commas, as
// clients take them.
func (c *Cluster) ConnectString() string {
	addrs := make([]string, len(c.Nodes))
	for i, n := range c.Nodes {
		addrs[i] = n.Addr()
	}
	return strings.Join(addrs, ",")
}

// Leader returns the server that says it leads, or [ErrNoLeader]. All are asked
// at once, for a paused one takes its time.
func (c *Cluster) Leader(ctx context.Context) (*Node, error) {
	modes := make([]string, len(c.Nodes))
	errs := make([]error, len(c.Nodes))
	var wg sync.WaitGroup
	for i, n := range c.Nodes {
		wg.Go(func() { modes[i], errs[i] = n.Mode(ctx) })
	}
	wg.Wait()
	for i, mode := range modes {
		if mode == "leader" {
			return c.Nodes[i], nil
		}
	}
	return nil, fmt.Errorf("%w: %w", ErrNoLeader, errors.Join(errs...))
}

// WaitLeader waits until a server other than the given ones leads, and returns
// it. A leader that was cut off may go on saying that it leads for a while,
// which is why one excludes it.
func (c *Cluster) WaitLeader(ctx context.Context, except ...*Node) (*Node, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	rest := c.without(except)
	var leader *Node
	err := poll(ctx, nil, pollInterval, func() (err error) {
		leader, err = rest.Leader(ctx)
		return err
	})
	return leader, err
}

// Followers returns the servers that say they follow.
func (c *Cluster) Followers(ctx context.Context) []*Node {
	var followers []*Node
	for _, n := range c.Nodes {
		if mode, err := n.Mode(ctx); err == nil && mode == "follower" {
			followers = append(followers, n)
		}
	}
	return followers
}

// WaitServing waits until every server serves.
func (c *Cluster) WaitServing(ctx context.Context) error {
	for _, n := range c.Nodes {
		if err := n.WaitServing(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Kill ends all servers by SIGKILL.
func (c *Cluster) Kill() {
	for _, n := range c.Nodes {
		n.Kill()
	}
}

func (c *Cluster) without(except []*Node) *Cluster {
	rest := &Cluster{}
	for _, n := range c.Nodes {
		keep := true
		for _, e := range except {
			keep = keep && n != e
		}
		if keep {
			rest.Nodes = append(rest.Nodes, n)
		}
	}
	return rest
}
