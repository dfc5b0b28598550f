package inspect

import (
	"cmp"
	"context"
	"errors"
	"path"
	"slices"
	"time"

	"github.com/zklock/zklock/zk"
)

// zxidClock tells the time of transactions, from some whose time is known.
type zxidClock struct {
	shown []timePoint
}

// timePoint is a transaction and its time, in milliseconds since 1970.
type timePoint struct{ zxid, at int64 }

// observe adds the times in a znode's stat.
func (c *zxidClock) observe(s zk.Stat) {
	c.shown = append(c.shown, timePoint{s.Czxid, s.Ctime}, timePoint{s.Mzxid, s.Mtime})
}

// sort prepares for questions. It sets each time to the earliest one at its transaction or
// later. The clocks of leaders differ, so that a later transaction may have an earlier
// time; the later transaction is then the better bound.
func (c *zxidClock) sort() {
	slices.SortFunc(c.shown, func(a, b timePoint) int { return cmp.Compare(a.zxid, b.zxid) })
	for i := len(c.shown) - 2; i >= 0; i-- {
		c.shown[i].at = min(c.shown[i].at, c.shown[i+1].at)
	}
}

// before returns a time at which the transaction was over, the earliest that is known. It
// returns false if none is known.
func (c *zxidClock) before(zxid int64) (time.Time, bool) {
	i, _ := slices.BinarySearchFunc(c.shown, zxid, func(m timePoint, zxid int64) int { return cmp.Compare(m.zxid, zxid) })
	if i == len(c.shown) {
		return time.Time{}, false
	}
	return time.UnixMilli(c.shown[i].at), true
}

// last returns the time of the last transaction; zero if there is none.
func (c *zxidClock) last() time.Time {
	if len(c.shown) == 0 {
		return time.Time{}
	}
	return time.UnixMilli(c.shown[len(c.shown)-1].at)
}

// ReadTime sets Now to the servers' time, by [ServerTime] in the directory of the mark, or,
// if that is not permitted, below the prefix. If neither is permitted, or the servers do
// not tell their time, Now stays zero.
func (s *Collector) ReadTime(ctx context.Context) error {
	ctx, cancel := s.limited(ctx)
	defer cancel()
	for _, directory := range []string{path.Dir(MarkPath), s.Prefix} {
		now, err := ServerTime(ctx, s.Client, directory)
		if err == nil {
			s.Now = now.At
			return nil
		}
		if ctx.Err() != nil || !errors.Is(err, ErrNoServerTime) && zk.Applied(err) == zk.AppliedUnknown {
			return err
		}
	}
	return nil
}
