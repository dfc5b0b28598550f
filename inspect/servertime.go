package inspect

import (
	"context"
	"crypto/rand"
	"errors"
	"path"
	"time"

	"github.com/zklock/zklock/zk"
)

// ErrNoServerTime means that the servers do not return the creation time of a new znode.
// Servers before ZooKeeper 3.5 do not.
var ErrNoServerTime = errors.New("the servers do not report their time")

// A TimeReading is the time of the ensemble's leader.
type TimeReading struct {
	At time.Time // truncated to the millisecond
	// Ahead is the minimum by which the leader's clock is ahead of the local clock. It is
	// negative if the leader's clock is behind, and 0 if the clocks may be equal.
	Ahead time.Duration
}

// ServerTime returns the time of the ensemble's leader. ZooKeeper has no request for it,
// but a new znode has the leader's time. ServerTime creates a znode in the directory and
// deletes it in the same transaction, so that no client sees it. Clients that watch the
// children of the directory receive an event. The error is [ErrNoServerTime] or that of the
// transaction.
func ServerTime(ctx context.Context, z *zk.Client, directory string) (TimeReading, error) {
	node := path.Join(directory, "zklock-time-"+rand.Text())
	before := time.Now().Truncate(time.Millisecond)
	// The response to the create of a container has a Stat, also in a transaction.
	results, err := z.Multi(ctx, zk.CreateOp(node, nil, nil, zk.ModeContainer), zk.DeleteOp(node, -1))
	after := time.Now()
	switch {
	case errors.Is(err, zk.ErrUnimplemented):
		return TimeReading{}, ErrNoServerTime
	case err != nil:
		return TimeReading{}, err
	case len(results) == 0 || results[0].Stat.Ctime == 0:
		return TimeReading{}, ErrNoServerTime
	}
	at := time.UnixMilli(results[0].Stat.Ctime)
	return TimeReading{at, gap(before, after, at)}, nil
}

// gap returns how much written is after the interval from before to after. It is negative
// if written is before the interval.
func gap(before, after, written time.Time) time.Duration {
	switch {
	case written.After(after):
		return written.Sub(after)
	case written.Before(before):
		return written.Sub(before)
	}
	return 0
}
