package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zklock/zklock"
)

// A leader election is a mutex that is held for as long as one leads: whoever
// holds is the leader, those who wait follow in turn, and Inspect names them. On a
// path of Curator's LeaderSelector it takes part as it is, on one of its
// LeaderLatch with LatchLayout.
func Example_leaderElection() {
	c, stop := open(func(o *zklock.Options) { o.Owner = &zklock.Owner{Host: "node1", PID: 1} })
	defer stop()
	election := c.Mutex("scheduler/leader")

	// lead is what each candidate runs, all its life. It leads until it resigns by
	// ending lead, or until the hold is lost, and then is a candidate again.
	candidate := func(ctx context.Context, lead func(ctx context.Context, term int64) error) error {
		for {
			err := zklock.Do(ctx, election, func(ctx context.Context, h *zklock.Hold) error {
				return lead(ctx, h.Token()) // terms grow: fence what the leader writes
			})
			if ctx.Err() != nil || !errors.Is(err, zklock.ErrLost) {
				return err
			}
		}
	}

	// leader names the leader of the moment, for anybody who wants to know.
	leader := func(ctx context.Context) string {
		entries, err := election.Inspect(ctx)
		if err != nil || len(entries) == 0 || !entries[0].Holder {
			return "nobody"
		}
		return entries[0].Owner.String()
	}

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	fmt.Println("leader:", leader(ctx))
	err := candidate(ctx, func(ctx context.Context, term int64) error {
		fmt.Println("leader:", leader(ctx), "in a term:", term > 0)
		return nil // resigns
	})
	fmt.Println("resigned:", err)
	fmt.Println("leader:", leader(ctx))
	// Output:
	// leader: nobody
	// leader: node1:1 in a term: true
	// resigned: <nil>
	// leader: nobody
}
