package differential

import (
	"fmt"
	"slices"
)

// zxids maps a server's transaction ids to what can be compared.
type zxids struct {
	exact bool
	base  int64 // the server's id when its pair began
	// own are the ids of the script's own writes, ascending; between them may be
	// those of other scripts.
	own []int64
	// times has the wall clock of each transaction, as Stats show it.
	times map[int64]int64
	// seen is the last id known after each step.
	seen []int64
}

// wrote notes the id of a write of the script's own.
func (z *zxids) wrote(id int64) {
	if n := len(z.own); n == 0 || id > z.own[n-1] {
		z.own = append(z.own, id)
	}
}

// name is the id for comparison: its distance from the base, or the own write
// that it is or follows.
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

// reading is the id in the header of a reply that made no transaction.
func (z *zxids) reading(id int64) string {
	if z.exact || id <= 0 {
		return z.name(id)
	}
	// Other scripts write as well: it may only not be too old.
	if n := len(z.own); n > 0 && id < z.own[n-1] {
		return fmt.Sprintf("%s, which is old", z.name(id))
	}
	return "current"
}

// back is the id that was the last one n steps ago.
func (z *zxids) back(n int) int64 {
	if n >= len(z.seen) {
		return z.base
	}
	return z.seen[len(z.seen)-1-n]
}

// time compares a time with what is known of its transaction: all Stats must show
// the same.
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
