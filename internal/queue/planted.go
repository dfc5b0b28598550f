package queue

import "strconv"

// What some of the planted bugs of internal/plant need beyond a condition. No
// build without them calls any of it, so that the linker leaves it out.

// oneByOne takes several permits apart, each to be taken by itself.
func oneByOne(all []Semaphore) (apart []Semaphore) {
	for _, s := range all {
		for range s.Permits {
			apart = append(apart, Semaphore{Path: s.Path, Permits: 1, Of: s.Of})
		}
	}
	return apart
}

// sequence is the number at the end of the znode's name, 1 if there is none.
func (n *node) sequence() int64 {
	seq, _ := strconv.ParseInt(n.name[max(0, len(n.name)-digits):], 10, 64)
	return seq + 1
}
