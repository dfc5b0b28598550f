// Package servertime asks ZooKeeper what time it is. No request does that; but what a
// server makes has the leader's time.
package servertime

import (
	"context"
	"crypto/rand"
	"errors"
	"path"
	"time"

	"github.com/zklock/zklock/zk"
)

// ErrUntold is for servers that make znodes and do not tell when: those before ZooKeeper
// 3.5 or so.
var ErrUntold = errors.New("the servers do not tell their time")

// A Reading is the leader's time.
type Reading struct {
	At time.Time // to the millisecond, cut off
	// Ahead is how much the leader's clock is ahead of this machine's at least; negative
	// if it is behind, and 0 if the two may be the same.
	Ahead time.Duration
}

// Ask makes a znode in the directory and deletes it in the same transaction, so that
// nobody ever sees it; whoever watches the directory's children is told of a change. The
// errors are ErrUntold, and those of the transaction.
func Ask(ctx context.Context, z *zk.Client, directory string) (Reading, error) {
	node := path.Join(directory, "zklock-time-"+rand.Text())
	before := time.Now().Truncate(time.Millisecond)
	// Of a container's create the answer has a Stat, also in a transaction.
	results, err := z.Multi(ctx, zk.CreateOp(node, nil, nil, zk.ModeContainer), zk.DeleteOp(node, -1))
	after := time.Now()
	switch {
	case err != nil:
		return Reading{}, err
	case len(results) == 0 || results[0].Stat.Ctime == 0:
		return Reading{}, ErrUntold
	}
	at := time.UnixMilli(results[0].Stat.Ctime)
	return Reading{at, ahead(before, after, at)}, nil
}

// ahead is how much the time that a server wrote is past the time when it may have
// written it, or before it if that is negative.
func ahead(before, after, written time.Time) time.Duration {
	switch {
	case written.After(after):
		return written.Sub(after)
	case written.Before(before):
		return written.Sub(before)
	}
	return 0
}
