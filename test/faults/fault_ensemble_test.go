package faults

import (
	"context"
	"time"

	"github.com/zklock/zklock/test/harness"
)

// endOfServer bounds the time that a server takes to exit on SIGTERM.
const endOfServer = time.Minute

// memberFaults are faults of the servers' processes.
func memberFaults() []fault {
	return []fault{
		{name: "leader killed", inject: on(func(_ context.Context, v victims) []*harness.Server { return []*harness.Server{v.leader} }, killMembers)},
		{name: "follower killed", inject: on(func(_ context.Context, v victims) []*harness.Server { return []*harness.Server{v.follower} }, killMembers)},
		{name: "all killed at once", inject: on(func(_ context.Context, v victims) []*harness.Server {
			return []*harness.Server{v.leader, v.follower, v.other}
		}, killMembers)},
		{name: "leader stopped", inject: on(func(_ context.Context, v victims) []*harness.Server { return []*harness.Server{v.leader} }, stopMembers)},
		{name: "follower stopped", inject: on(func(_ context.Context, v victims) []*harness.Server { return []*harness.Server{v.follower} }, stopMembers)},
		{name: "rolling restart", inject: rolling},
		{name: "leader stopped and cut off", inject: stopAndCut},
		{name: "follower cut off, leader killed", inject: cutAndKill},
	}
}

// on injects a fault of some servers for the step's time.
func on(which func(context.Context, victims) []*harness.Server, do func(context.Context, *round, []*harness.Server, time.Duration) error) func(context.Context, *round, Step) (bool, error) {
	return func(ctx context.Context, s *round, step Step) (bool, error) {
		v, err := s.server.Ensemble.choose(ctx, step)
		if err != nil {
			return false, err
		}
		err = do(ctx, s, which(ctx, v), s.span(step))
		return err == nil, err
	}
}

// killMembers ends servers by SIGKILL and starts them again.
func killMembers(ctx context.Context, s *round, nodes []*harness.Server, d time.Duration) error {
	for _, n := range nodes {
		n.Kill()
	}
	harness.Sleep(ctx, d/2)
	return s.server.Ensemble.heal(ctx)
}

// stopMembers stops servers by SIGSTOP.
func stopMembers(ctx context.Context, s *round, nodes []*harness.Server, d time.Duration) error {
	for _, n := range nodes {
		if err := n.Stop(); err != nil {
			return err
		}
	}
	harness.Sleep(ctx, d)
	return s.server.Ensemble.heal(ctx)
}

// rolling restarts one server after another, like an upgrade.
func rolling(ctx context.Context, s *round, _ Step) (bool, error) {
	for _, n := range s.server.Ensemble.servers.Servers {
		ending, cancel := context.WithTimeout(ctx, endOfServer)
		err := n.Terminate(ending)
		cancel()
		if err != nil {
			return false, err
		}
		if err := s.server.Ensemble.heal(ctx); err != nil {
			return false, err
		}
	}
	return true, nil
}

// stopAndCut stops the leader while it is cut off, and continues it before it is connected
// again. For that time, the deposed leader does not know that there is another one.
func stopAndCut(ctx context.Context, s *round, step Step) (bool, error) {
	v, err := s.server.Ensemble.choose(ctx, step)
	if err != nil {
		return false, err
	}
	if err := s.server.Ensemble.host(v.leader).CutQuorum(); err != nil {
		return false, err
	}
	if err := v.leader.Stop(); err != nil {
		return false, err
	}
	harness.Sleep(ctx, s.server.Timeout/2+s.span(step)/2)
	if err := v.leader.Cont(); err != nil {
		return false, err
	}
	harness.Sleep(ctx, s.server.Timeout/2)
	return true, s.server.Ensemble.heal(ctx)
}

// cutAndKill cuts off one server and kills another one, so that there is no quorum.
func cutAndKill(ctx context.Context, s *round, step Step) (bool, error) {
	v, err := s.server.Ensemble.choose(ctx, step)
	if err != nil {
		return false, err
	}
	if err := s.server.Ensemble.host(v.follower).CutQuorum(); err != nil {
		return false, err
	}
	v.leader.Kill()
	harness.Sleep(ctx, s.span(step))
	return true, s.server.Ensemble.heal(ctx)
}
