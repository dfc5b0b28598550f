package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/zklock/zklock/test/harness"
)

// The servers of an ensemble. A server that receives nothing from the others gives up
// after syncLimit ticks.
const (
	ensembleSize = 3
	ensembleTick = 500 * time.Millisecond
	syncLimit    = 4
)

// An Ensemble is servers in network namespaces.
type Ensemble struct {
	network *harness.Network
	servers *harness.Ensemble
}

// ensembleDisk is the size of the last server's disk. It is large enough for a long run.
const ensembleDisk = "512m"

// startEnsemble starts an ensemble, which is killed when the test ends.
func startEnsemble(tb testing.TB) *Server {
	tb.Helper()
	n := harness.NewNetwork(tb, ensembleSize)
	e := &Ensemble{network: n, servers: harness.StartEnsembleAt(tb, n.Placements(), harness.ServerConfig{
		TickTime: ensembleTick, SyncLimit: syncLimit, Extra: map[string]string{"snapCount": "20000"},
	})}
	const timeout = 4 * ensembleTick
	s := &Server{
		Name: "ensemble", Addr: e.servers.ConnectString(), Timeout: timeout, Tick: ensembleTick,
		// A session whose last connection was to a deposed leader gets its full timeout
		// from the next leader.
		Slack:   2*ensembleTick + busySlack,
		Workers: 4, Ensemble: e, Heal: e.heal,
		Rounds: rounds{steps: 26, kinds: 3, min: 1, max: 4, pause: timeout / 8, acquired: 30},
		Log:    func() string { return e.servers.Servers[0].LogTail() },
	}
	if err := e.shrink(tb, s); err != nil {
		tb.Fatal(err)
	}
	return s
}

// shrink moves the last server's data to a small file system.
func (e *Ensemble) shrink(tb testing.TB, s *Server) error {
	tb.Helper()
	n := e.servers.Servers[ensembleSize-1]
	n.Kill()
	data, copied := n.DataDir(), filepath.Join(tb.TempDir(), "data")
	if err := os.CopyFS(copied, os.DirFS(data)); err != nil {
		return err
	}
	if reason := mountSmall(tb, data, ensembleDisk); reason != "" {
		return errors.New(reason)
	}
	tb.Cleanup(n.Kill) // before the unmount
	if err := os.CopyFS(data, os.DirFS(copied)); err != nil {
		return err
	}
	s.Disk = &smallDisk{dir: data, log: n.LogPath(), kill: n.Kill, restart: e.heal}
	return n.Restart(tb.Context())
}

// host returns the namespace of a server.
func (e *Ensemble) host(n *harness.Server) *harness.Host { return e.network.Hosts[n.ID()-1] }

// leader returns the leader and the followers.
func (e *Ensemble) leader(ctx context.Context) (leader *harness.Server, followers []*harness.Server, err error) {
	leader, err = e.servers.WaitLeader(ctx)
	for _, n := range e.servers.Servers {
		if n != leader {
			followers = append(followers, n)
		}
	}
	return leader, followers, err
}

// heal ends all faults, and returns when every server serves.
func (e *Ensemble) heal(ctx context.Context) error {
	errs := []error{e.network.Heal()}
	for _, n := range e.servers.Servers {
		if n.Pid() == 0 {
			errs = append(errs, n.Start())
			continue
		}
		errs = append(errs, n.Cont())
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return e.servers.WaitServing(ctx)
}

// victims are the leader and the followers in a drawn order.
type victims struct{ leader, follower, other *harness.Server }

// choose draws the victims of a step.
func (e *Ensemble) choose(ctx context.Context, step Step) (v victims, err error) {
	leader, followers, err := e.leader(ctx)
	if err != nil {
		return v, err
	}
	i := step.Target % len(followers)
	return victims{leader, followers[i], followers[(i+1)%len(followers)]}, nil
}

// differences returns the znodes below the roots that only some servers have. It is called
// while no client creates or deletes znodes. A correct ensemble has no differences.
func (e *Ensemble) differences(ctx context.Context, roots []string) ([]string, error) {
	on := map[string][]string{} // the servers that have a znode, by its path
	for _, n := range e.servers.Servers {
		op, err := newOperator(ctx, &Server{Addr: n.Addr(), Timeout: 4 * ensembleTick, Tick: ensembleTick})
		if err != nil {
			return nil, err
		}
		for _, root := range roots {
			all, err := op.below(ctx, root)
			if err != nil {
				return nil, errors.Join(err, op.client.Close())
			}
			for _, f := range all {
				on[f.path] = append(on[f.path], n.Addr())
			}
		}
		if err := op.client.Close(); err != nil {
			return nil, err
		}
	}
	var all []string
	for path, have := range on {
		if len(have) < len(e.servers.Servers) {
			all = append(all, fmt.Sprintf("%s is only on %v", path, have))
		}
	}
	slices.Sort(all)
	return all, nil
}
