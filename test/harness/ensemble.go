package harness

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// ErrNoLeader reports that an ensemble has no leader.
var ErrNoLeader = errors.New("harness: the ensemble has no leader")

// Ensemble is a set of ZooKeeper servers that replicate one tree. Any goroutine may call its
// methods.
type Ensemble struct {
	Servers []*Server // by id, from 1 on
}

// ConnectString returns the addresses of all servers, separated by commas.
func (c *Ensemble) ConnectString() string { return c.ConnectStringFrom(0) }

// ConnectStringFrom is ConnectString with the i-th server first.
func (c *Ensemble) ConnectStringFrom(i int) string {
	addrs := make([]string, len(c.Servers))
	for k := range addrs {
		addrs[k] = c.Servers[(i+k)%len(addrs)].Addr()
	}
	return strings.Join(addrs, ",")
}

// Leader returns the server that reports itself as leader, or [ErrNoLeader]. It asks
// all servers at the same time, because a paused one does not answer.
func (c *Ensemble) Leader(ctx context.Context) (*Server, error) {
	modes := make([]string, len(c.Servers))
	errs := make([]error, len(c.Servers))
	var wg sync.WaitGroup
	for i, n := range c.Servers {
		wg.Go(func() { modes[i], errs[i] = n.Mode(ctx) })
	}
	wg.Wait()
	for i, mode := range modes {
		if mode == "leader" {
			return c.Servers[i], nil
		}
	}
	return nil, fmt.Errorf("%w: %w", ErrNoLeader, errors.Join(errs...))
}

// WaitLeader waits until a server other than the given ones leads, and returns
// it. A leader that was cut off may report itself as leader for a while, so the caller
// excludes it.
func (c *Ensemble) WaitLeader(ctx context.Context, except ...*Server) (*Server, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	rest := c.without(except)
	var leader *Server
	err := poll(ctx, nil, pollInterval, func() (err error) {
		leader, err = rest.Leader(ctx)
		return err
	})
	return leader, err
}

// WaitFollowers waits until count servers report that they are followers, and returns them.
func (c *Ensemble) WaitFollowers(ctx context.Context, count int) (followers []*Server, err error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	err = poll(ctx, nil, pollInterval, func() error {
		followers = nil
		for _, n := range c.Servers {
			if mode, err := n.Mode(ctx); err == nil && mode == "follower" {
				followers = append(followers, n)
			}
		}
		if len(followers) != count {
			return fmt.Errorf("%w: %d servers follow, not %d", ErrNotServing, len(followers), count)
		}
		return nil
	})
	return followers, err
}

// WaitServing waits until every server serves.
func (c *Ensemble) WaitServing(ctx context.Context) error {
	for _, n := range c.Servers {
		if err := n.WaitServing(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Kill ends all servers by SIGKILL.
func (c *Ensemble) Kill() {
	for _, n := range c.Servers {
		n.Kill()
	}
}

func (c *Ensemble) without(except []*Server) *Ensemble {
	rest := &Ensemble{}
	for _, n := range c.Servers {
		keep := true
		for _, e := range except {
			keep = keep && n != e
		}
		if keep {
			rest.Servers = append(rest.Servers, n)
		}
	}
	return rest
}

// Placement is the location of a server in an ensemble that is not on the loopback interface.
type Placement struct {
	ClientHost string   // address for clients
	QuorumHost string   // address for the other servers
	Prefix     []string // command that runs the server, such as "ip netns exec NAME"
	Observer   bool     // the server does not vote
}

// StartEnsemble starts size servers on the loopback interface, waits for a leader,
// and ends them in the test's cleanup.
func StartEnsemble(tb testing.TB, size int, cfg ServerConfig) *Ensemble {
	tb.Helper()
	places := make([]Placement, size)
	for i := range places {
		places[i] = Placement{ClientHost: "127.0.0.1", QuorumHost: "127.0.0.1"}
	}
	return StartEnsembleAt(tb, places, cfg)
}

// StartEnsembleAt is [StartEnsemble] with one server for each placement.
func StartEnsembleAt(tb testing.TB, places []Placement, cfg ServerConfig) *Ensemble {
	tb.Helper()
	needRelease(tb, cfg.Release)
	c, err := newEnsemble(tb.TempDir(), places, cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.Kill)
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	for _, n := range c.Servers {
		if err := n.Start(); err != nil {
			tb.Fatal(err)
		}
	}
	for _, n := range c.Servers {
		if err := n.WaitServing(ctx); err != nil {
			tb.Fatal(err)
		}
	}
	return c
}

func newEnsemble(dir string, places []Placement, cfg ServerConfig) (*Ensemble, error) {
	numbers, err := freePorts.take(3 * len(places))
	if err != nil {
		return nil, err
	}
	members := make([]member, len(places))
	for i, p := range places {
		members[i] = member{id: i + 1, host: p.QuorumHost, quorumPort: numbers[3*i], electPort: numbers[3*i+1], observer: p.Observer}
	}
	c := &Ensemble{}
	for i, p := range places {
		sub := filepath.Join(dir, fmt.Sprint(i+1))
		n, err := newServer(cfg, i+1, sub, p.ClientHost, numbers[3*i+2], members)
		if err != nil {
			return nil, err
		}
		n.prefix, n.quorumPort = p.Prefix, members[i].quorumPort
		c.Servers = append(c.Servers, n)
	}
	return c, nil
}
