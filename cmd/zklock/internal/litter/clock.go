package litter

import (
	"context"
	"errors"
	"path"
	"slices"
	"time"

	"github.com/zklock/zklock/cmd/zklock/internal/servertime"
	"github.com/zklock/zklock/zk"
)

// clock tells the time of transactions: it was shown some whose time is known.
type clock struct {
	shown []moment
}

// moment is a transaction with its time, in milliseconds since 1970.
type moment struct{ zxid, at int64 }

// see takes what a znode's stat shows.
func (c *clock) see(s zk.Stat) {
	c.shown = append(c.shown, moment{s.Czxid, s.Ctime}, moment{s.Mzxid, s.Mtime})
}

// settle makes ready for questions: afterwards each moment has the earliest time of
// all that came at it or later. Leaders' clocks differ, so that a later transaction
// may have an earlier time; it is then the later one that tells.
func (c *clock) settle() {
	slices.SortFunc(c.shown, func(a, b moment) int {
		switch {
		case a.zxid < b.zxid:
			return -1
		case a.zxid > b.zxid:
			return 1
		}
		return 0
	})
	for i := len(c.shown) - 2; i >= 0; i-- {
		c.shown[i].at = min(c.shown[i].at, c.shown[i+1].at)
	}
}

// before returns a time at which a transaction was over, the earliest that is known,
// or false if none is.
func (c *clock) before(zxid int64) (time.Time, bool) {
	i, _ := slices.BinarySearchFunc(c.shown, zxid, func(m moment, zxid int64) int {
		switch {
		case m.zxid < zxid:
			return -1
		case m.zxid > zxid:
			return 1
		}
		return 0
	})
	if i == len(c.shown) {
		return time.Time{}, false
	}
	return time.UnixMilli(c.shown[i].at), true
}

// last is the time of the last transaction that it was shown; zero if of none.
func (c *clock) last() time.Time {
	if len(c.shown) == 0 {
		return time.Time{}
	}
	return time.UnixMilli(c.shown[len(c.shown)-1].at)
}

// Ask sets Now to the servers' time: of a znode that is made and deleted in one
// transaction, beside the mark or, where that is not permitted, below the prefix. If
// neither is, or the servers do not tell, Now stays zero.
func (s *Search) Ask(ctx context.Context) error {
	for _, directory := range []string{path.Dir(Mark), s.Prefix} {
		now, err := servertime.Ask(ctx, s.Z, directory)
		if err == nil {
			s.Now = now.At
			return nil
		}
		if ctx.Err() != nil || !errors.Is(err, servertime.ErrUntold) && zk.Applied(err) == zk.AppliedUnknown {
			return err
		}
	}
	return nil
}
