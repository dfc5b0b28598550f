package ensemble

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/zklock/zklock/test/netns"
	"github.com/zklock/zklock/test/zkreal"
)

// The servers' settings: who hears nothing of the others gives up after syncLimit
// ticks.
const (
	size      = 3
	tick      = 500 * time.Millisecond
	syncLimit = 4
	timeout   = 4 * tick // of the clients' sessions
)

// Ensemble is servers in namespaces, and what can be done to them.
type Ensemble struct {
	network *netns.Network
	cluster *zkreal.Cluster
	disk    string // the small file system with the last server's data
}

// start starts the servers, which the test's cleanup ends.
func start(tb testing.TB) *Ensemble {
	tb.Helper()
	n := netns.New(tb, size)
	e := &Ensemble{network: n, cluster: zkreal.EnsembleAt(tb, n.Places(), zkreal.Config{
		TickTime: tick, SyncLimit: syncLimit, Extra: map[string]string{"snapCount": "20000"},
	})}
	if err := e.shrink(tb); err != nil {
		tb.Fatal(err)
	}
	return e
}

// diskSize is what a long run needs, with room to spare.
const diskSize = "512m"

// shrink moves the last server's data to a small file system.
func (e *Ensemble) shrink(tb testing.TB) error {
	tb.Helper()
	n := e.cluster.Nodes[size-1]
	n.Kill()
	data, copied := n.DataDir(), filepath.Join(tb.TempDir(), "data")
	if err := os.CopyFS(copied, os.DirFS(data)); err != nil {
		return err
	}
	if err := syscall.Mount("tmpfs", data, "tmpfs", 0, "size="+diskSize); err != nil {
		return fmt.Errorf("mount a small file system: %w", err)
	}
	tb.Cleanup(func() {
		n.Kill()
		if err := syscall.Unmount(data, syscall.MNT_DETACH); err != nil {
			tb.Error(err)
		}
	})
	if err := os.CopyFS(data, os.DirFS(copied)); err != nil {
		return err
	}
	e.disk = data
	return n.Restart(tb.Context())
}

// host is the namespace of a server.
func (e *Ensemble) host(n *zkreal.Node) *netns.Host { return e.network.Hosts[n.ID()-1] }

// leader is the server that leads, and followers the others.
func (e *Ensemble) leader(ctx context.Context) (leader *zkreal.Node, followers []*zkreal.Node, err error) {
	leader, err = e.cluster.WaitLeader(ctx)
	for _, n := range e.cluster.Nodes {
		if n != leader {
			followers = append(followers, n)
		}
	}
	return leader, followers, err
}

// heal ends all faults, and returns when every server serves.
func (e *Ensemble) heal(ctx context.Context) error {
	errs := []error{e.network.Heal()}
	for _, n := range e.cluster.Nodes {
		if n.Pid() == 0 {
			errs = append(errs, n.Start())
			continue
		}
		errs = append(errs, n.Cont())
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return e.cluster.WaitServing(ctx)
}

// rest waits, and reports whether ctx goes on.
func rest(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
