package queue

import (
	"cmp"
	"slices"
	"time"
)

// maxBacklog is how many unanswered canceled acquires make other acquires wait.
const maxBacklog = 64

// A backlog limits the requests of canceled acquires. Cancel returns at once, but the create
// of the acquire stays in flight. Without a limit, callers with short timeouts could start
// acquires faster than the servers answer them, and heartbeats would wait behind all these
// requests.
//
// Invariant: unanswered counts the creates and inquiries of this session that have no answer,
// and whose acquire was canceled, has left them to start again, or was in parked before. While
// connected, parked is empty or unanswered is at least maxBacklog, so that the next answers
// resume the acquires in parked.
//
// An acquire in parked waits for no answer, so its cancel sends nothing. Once resumed, it counts
// until its create is answered. Otherwise one answer would resume all acquires in parked, and
// all of them could be canceled again.
type backlog struct {
	unanswered int
	parked     []*acquire // in order of arrival
}

// start enqueues a parked acquire, or adds it to the backlog if that is full.
func (c *Core) start(now time.Duration, acq *acquire) {
	b := &c.backlog
	switch i, found := b.find(acq); {
	case b.unanswered >= maxBacklog && !found:
		b.dropInquiry(acq)
		b.parked = slices.Insert(b.parked, i, acq)
		return
	case b.unanswered >= maxBacklog:
		return
	case found:
		b.parked = deleteAt(b.parked, i)
		acq.counts = true
	}
	c.enqueue(now, acq)
}

// resumeParked resumes acquires of the backlog while it has room.
func (c *Core) resumeParked(now time.Duration) {
	for b := &c.backlog; len(b.parked) > 0 && b.unanswered < maxBacklog && c.connected(); {
		c.start(now, b.parked[0])
	}
}

// find returns the index in parked at which the acquire is or belongs.
func (b *backlog) find(acq *acquire) (int, bool) {
	return slices.BinarySearchFunc(b.parked, acq, func(x, y *acquire) int { return cmp.Compare(x.id, y.id) })
}

// count counts a create or an inquiry until its answer; counted is its flag for that.
func (b *backlog) count(counted *bool) {
	if !*counted {
		*counted = true
		b.unanswered++
	}
}

// countLeft counts the create of an acquire that leaves these positions. At most one create of
// an acquire is in flight, and its first znode has the flag.
func (b *backlog) countLeft(positions []*position) {
	for _, p := range positions {
		if len(p.nodes) > 0 && p.nodes[0].state == creating {
			b.count(&p.nodes[0].counted)
			return
		}
	}
}

// answered ends the count of a create or an inquiry that was sent in this session. The end of
// a session resets the count.
func (b *backlog) answered(counted *bool, session, current int64) {
	if *counted && session == current {
		b.unanswered--
	}
	*counted = false
}

// dropInquiry makes an acquire ignore the answer to its inquiry, which still counts.
func (b *backlog) dropInquiry(acq *acquire) {
	if acq.inquiry != nil {
		b.count(&acq.inquiry.counted)
		acq.inquiry = nil
	}
}

// remove removes an acquire that ends.
func (b *backlog) remove(acq *acquire) {
	b.dropInquiry(acq)
	if i, found := b.find(acq); found {
		b.parked = deleteAt(b.parked, i)
	}
}
