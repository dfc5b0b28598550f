package ensemble

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/zklock/zklock/test/storm"
	"github.com/zklock/zklock/test/zkreal"
)

// fault is something that can be done, as the steps of a script name it.
type fault struct {
	name string
	// inject does it, and reports whether it happened. The network and all servers
	// are whole again afterwards. An error is the test's own failure.
	inject func(ctx context.Context, r *round, step storm.Step) (happened bool, err error)
}

// faults are all that can be done here.
func faults() []fault {
	all := slices.Concat(linkFaults(), serverFaults(), workerFaults())
	if canDestroy() {
		all = append(all, fault{"sockets destroyed", destroySockets})
	}
	return all
}

// find is the fault of a name.
func find(all []fault, name string) (fault, error) {
	i := slices.IndexFunc(all, func(f fault) bool { return f.name == name })
	if i < 0 {
		return fault{}, fmt.Errorf("ensemble: no fault is called %q", name)
	}
	return all[i], nil
}

// span is how long a step lasts.
func span(step storm.Step) time.Duration { return time.Duration(step.For * float64(timeout)) }

// victims are the leader, one of the followers, and the other.
type victims struct{ leader, follower, other *zkreal.Node }

// choose draws the victims of a step.
func (e *Ensemble) choose(ctx context.Context, step storm.Step) (v victims, err error) {
	leader, followers, err := e.leader(ctx)
	if err != nil {
		return v, err
	}
	i := step.Who % len(followers)
	return victims{leader, followers[i], followers[(i+1)%len(followers)]}, nil
}
