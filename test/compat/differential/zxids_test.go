package differential

import (
	"fmt"
	"slices"
)

// zxids maps the transaction ids of a server to comparable names.
type zxids struct {
	exact bool
	base  int64 // the server's last id at the start
	// own are the ids of the script's writes, ascending. The ids of other scripts may be between
	// them.
	own []int64
	// times are the times of transactions in Stats.
	times map[int64]int64
	// seen are the last ids after each step.
	seen []int64
}

// wrote records the id of a write of the script.
func (z *zxids) wrote(id int64) {
	if n := len(z.own); n == 0 || id > z.own[n-1] {
		z.own = append(z.own, id)
	}
}

// name returns a comparable name of an id: its distance from the base, or the number of the
// script's write that it is or follows.
func (z *zxids) name(id int64) string {
	switch {
	case id <= 0:
		return fmt.Sprint(id)
	case z.exact:
		return fmt.Sprintf("%+d", id-z.base)
	}
	i, found := slices.BinarySearch(z.own, id)
	if found {
		return fmt.Sprintf("#%d", i+1)
	}
	return fmt.Sprintf("after #%d", i)
}

// reading returns the name of an id in the header of a reply without a transaction.
func (z *zxids) reading(id int64) string {
	if z.exact || id <= 0 {
		return z.name(id)
	}
	// Other scripts write too, so only an old id is wrong.
	if n := len(z.own); n > 0 && id < z.own[n-1] {
		return fmt.Sprintf("%s, which is old", z.name(id))
	}
	return "current"
}

// back returns the last id n steps ago.
func (z *zxids) back(n int) int64 {
	if n >= len(z.seen) {
		return z.base
	}
	return z.seen[len(z.seen)-1-n]
}

// time compares a time with that of its transaction in other Stats.
func (z *zxids) time(id, ms int64) string {
	if id == 0 {
		return fmt.Sprint(ms)
	}
	if z.times == nil {
		z.times = make(map[int64]int64)
	}
	want, ok := z.times[id]
	if !ok {
		z.times[id] = ms
		want = ms
	}
	if ms != want {
		return fmt.Sprintf("(off by %d ms)", ms-want)
	}
	return ""
}
