package ensemble

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/zklock/zklock/test/storm"
	"github.com/zklock/zklock/test/zkreal"
)

// endOfServer bounds how long a server may take to end by itself.
const endOfServer = 10 * time.Second

// serverFaults are what can be done to the servers' processes, and to a disk.
func serverFaults() []fault {
	return []fault{
		{"leader killed", on(func(_ context.Context, v victims) []*zkreal.Node { return []*zkreal.Node{v.leader} }, kill)},
		{"follower killed", on(func(_ context.Context, v victims) []*zkreal.Node { return []*zkreal.Node{v.follower} }, kill)},
		{"all killed at once", on(func(_ context.Context, v victims) []*zkreal.Node {
			return []*zkreal.Node{v.leader, v.follower, v.other}
		}, kill)},
		{"leader stopped", on(func(_ context.Context, v victims) []*zkreal.Node { return []*zkreal.Node{v.leader} }, stop)},
		{"follower stopped", on(func(_ context.Context, v victims) []*zkreal.Node { return []*zkreal.Node{v.follower} }, stop)},
		{"rolling restart", rolling},
		{"leader stopped and cut off", stopAndCut},
		{"follower cut off, leader killed", cutAndKill},
		{"disk full", fillUp},
	}
}

// on does something to some of the servers for the time of a step.
func on(which func(context.Context, victims) []*zkreal.Node, do func(context.Context, *round, []*zkreal.Node, time.Duration) error) func(context.Context, *round, storm.Step) (bool, error) {
	return func(ctx context.Context, r *round, step storm.Step) (bool, error) {
		v, err := r.ensemble.choose(ctx, step)
		if err != nil {
			return false, err
		}
		err = do(ctx, r, which(ctx, v), span(step))
		return err == nil, err
	}
}

// kill ends servers by SIGKILL and starts them again.
func kill(ctx context.Context, r *round, nodes []*zkreal.Node, d time.Duration) error {
	for _, n := range nodes {
		n.Kill()
	}
	rest(ctx, d/2)
	return r.ensemble.heal(ctx)
}

// stop has servers stand still by SIGSTOP.
func stop(ctx context.Context, r *round, nodes []*zkreal.Node, d time.Duration) error {
	for _, n := range nodes {
		if err := n.Stop(); err != nil {
			return err
		}
	}
	rest(ctx, d)
	return r.ensemble.heal(ctx)
}

// rolling restarts one server after another, in order, as for an upgrade.
func rolling(ctx context.Context, r *round, _ storm.Step) (bool, error) {
	for _, n := range r.ensemble.cluster.Nodes {
		ending, cancel := context.WithTimeout(ctx, endOfServer)
		err := n.Terminate(ending)
		cancel()
		if err != nil {
			return false, err
		}
		if err := r.ensemble.heal(ctx); err != nil {
			return false, err
		}
	}
	return true, nil
}

// stopAndCut has the leader stand still while it is cut off, and go on some time
// before it is back: it does not know yet that it leads no more.
func stopAndCut(ctx context.Context, r *round, step storm.Step) (bool, error) {
	v, err := r.ensemble.choose(ctx, step)
	if err != nil {
		return false, err
	}
	if err := r.ensemble.host(v.leader).CutQuorum(); err != nil {
		return false, err
	}
	if err := v.leader.Stop(); err != nil {
		return false, err
	}
	rest(ctx, timeout/2+span(step)/2)
	if err := v.leader.Cont(); err != nil {
		return false, err
	}
	rest(ctx, timeout/2)
	return true, r.ensemble.heal(ctx)
}

// cutAndKill leaves no quorum: one server is cut off, another one killed.
func cutAndKill(ctx context.Context, r *round, step storm.Step) (bool, error) {
	v, err := r.ensemble.choose(ctx, step)
	if err != nil {
		return false, err
	}
	if err := r.ensemble.host(v.follower).CutQuorum(); err != nil {
		return false, err
	}
	v.leader.Kill()
	rest(ctx, span(step))
	return true, r.ensemble.heal(ctx)
}

// fillUp fills the last server's disk until it notices, makes room, and starts the
// server again, which has ended or may have.
func fillUp(ctx context.Context, r *round, step storm.Step) (bool, error) {
	e, n := r.ensemble, r.ensemble.cluster.Nodes[size-1]
	before, err := noticed(n)
	if err != nil {
		return false, err
	}
	ballast := filepath.Join(e.disk, "ballast")
	if err := fill(ballast); err != nil {
		return false, err
	}
	waiting, cancel := context.WithTimeout(ctx, 4*timeout)
	defer cancel()
	now := before
	for now == before && err == nil && rest(waiting, 20*time.Millisecond) {
		now, err = noticed(n)
	}
	rest(ctx, span(step)/2)
	n.Kill()
	return now > before, errors.Join(err, os.Remove(ballast), e.heal(ctx))
}

// noticed is how often a server has said that its disk is full.
func noticed(n *zkreal.Node) (int, error) {
	log, err := os.ReadFile(n.LogPath())
	return strings.Count(string(log), "No space left on device"), err
}

// fill writes a file until no byte is free.
func fill(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	for chunk := make([]byte, 1<<20); err == nil; {
		_, err = f.Write(chunk)
	}
	for chunk := make([]byte, 512); errors.Is(err, syscall.ENOSPC); {
		if _, err = f.Write(chunk); err != nil {
			err = nil
		}
	}
	return errors.Join(err, f.Close())
}
