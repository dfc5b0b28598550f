package inspect

import (
	"cmp"
	"container/heap"
	"time"
)

// This file says what the watcher reads next.

// readState says whether the watcher must read a znode.
type readState uint8

const (
	readCurrent readState = iota // nothing to read
	readDue                      // it is new, or has changed
	readDelayed                  // reading it took too long
	readStarted                  // a read is in flight
)

// speed says how long the last read of a znode took. One goroutine reads the quick znodes, one the
// slow ones, so that a slow znode delays no quick one.
type speed uint8

const (
	quick speed = iota
	slow        // longer than maxQuickRead
	speeds
)

// speedOf returns the speed of a znode whose read took a time.
func speedOf(took time.Duration) speed {
	if took > maxQuickRead {
		return slow
	}
	return quick
}

// maxQuickRead is the longest time for the read of a quick znode. If it takes longer, the watcher
// reads it again as a slow one.
const maxQuickRead = time.Second

// readJob is a znode in a schedule. It stays there until a read answers.
type readJob struct {
	path  string
	node  bool // a new znode that may be a node lock; otherwise the path of a lock
	state readState
	speed speed         // changes only while the job is not in a heap
	at    time.Time     // when to read it, if it is due or delayed
	delay time.Duration // after the last read, which took too long; zero after another
	order int64         // among jobs with the same time
	index int           // in its heap
}

// schedule contains the znodes to read.
type schedule struct {
	jobs    [speeds]jobHeap
	added   int64 // counts the jobs that were added
	pending int   // locks that are due or being read
}

// set changes the state of a job, and when to read it.
func (s *schedule) set(j *readJob, state readState, at time.Time) {
	waits := func() bool { return j.state == readDue || j.state == readDelayed }
	pending := func() bool { return (j.state == readDue || j.state == readStarted) && !j.node }
	if waits() {
		heap.Remove(&s.jobs[j.speed], j.index)
	}
	if pending() {
		s.pending--
	}
	j.state, j.at = state, at
	if waits() {
		s.added++
		j.order = s.added
		heap.Push(&s.jobs[j.speed], j)
	}
	if pending() {
		s.pending++
	}
}

// first returns the job of this speed that is to be read first, and when. It returns nil if there
// is none.
func (s *schedule) first(of speed, now time.Time) (j *readJob, wait time.Duration) {
	if len(s.jobs[of]) == 0 {
		return nil, 0
	}
	j = s.jobs[of][0]
	return j, j.at.Sub(now)
}

// jobHeap is a heap of jobs, in the order in which to read them.
type jobHeap []*readJob

func (h jobHeap) Len() int { return len(h) }
func (h jobHeap) Less(i, j int) bool {
	return cmp.Or(h[i].at.Compare(h[j].at), cmp.Compare(h[i].order, h[j].order)) < 0
}
func (h jobHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *jobHeap) Push(x any) {
	j := x.(*readJob)
	j.index = len(*h)
	*h = append(*h, j)
}
func (h *jobHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return last
}
