package zkserver

import (
	"errors"
	"iter"
	"math"
	"net"
	"strconv"
	"strings"
	"time"
)

const (
	// chunkItems is how many watches, sessions, or connections a word collects between two
	// batches. It keeps the loop for well below a millisecond.
	chunkItems = 512
	// chunkBytes is how many bytes of an answer are collected before they are written.
	chunkBytes = 32 << 10
)

// errServerEnded ends an answer because the server has ended.
var errServerEnded = errors.New("zkserver: the server ended")

// errNoTurn ends an answer that waited too long for its turn.
var errNoTurn = errors.New("zkserver: too many four-letter words at once")

// answer is the answer to a four-letter word. The connection's goroutine writes it as it
// grows, so that a list of a million watches takes little memory. The server closes the
// connection of a client that does not read. A failure is kept in err, and everything after
// it does nothing.
//
// Thousands of clients may ask at once, and the loop needs a processor. So an answer takes
// a slot of the server, except while it writes or waits for another answer.
type answer struct {
	nc      net.Conn
	timeout time.Duration // for chunkBytes, and for a slot
	listing bool          // the answer has the list slot
	left    time.Duration // for all further writes while listing
	buf     []byte
	err     error

	slots   chan struct{}   // has an element for each word that computes
	slot    bool            // the answer has a slot
	aborted <-chan struct{} // closed when the connection ends; nil if it has ended
}

// pause gives the slot back.
func (a *answer) pause() {
	if a.slot {
		a.slot = false
		<-a.slots
	}
}

// resume waits for a slot.
func (a *answer) resume() {
	if a.err != nil {
		return
	}
	if a.aborted == nil {
		a.err = net.ErrClosed
		return
	}
	t := time.NewTimer(a.timeout)
	defer t.Stop()
	select {
	case a.slots <- struct{}{}:
		a.slot = true
	case <-a.aborted:
		a.err = net.ErrClosed
	case <-t.C:
		a.err = errNoTurn
	}
}

// text appends s to the answer.
func (a *answer) text(s string) {
	if a.err != nil {
		return
	}
	a.buf = append(a.buf, s...)
	if len(a.buf) >= chunkBytes {
		a.flush()
		a.resume()
	}
}

// flush writes the collected bytes, without a slot.
func (a *answer) flush() {
	a.pause()
	if a.err != nil || len(a.buf) == 0 {
		return
	}
	began, limit := time.Now(), a.timeout
	if a.listing {
		limit = a.left
	}
	if a.err = a.nc.SetWriteDeadline(began.Add(limit)); a.err == nil {
		_, a.err = a.nc.Write(a.buf)
	}
	a.left -= time.Since(began)
	a.buf = a.buf[:0]
}

// inChunks runs a sequence over the loop's state on the loop, some values at a time, and
// calls use for each on the calling goroutine. It stops when the answer has failed, or its
// connection has ended.
func inChunks[T any](s *Server, a *answer, seq iter.Seq[T], use func(T)) {
	next, stop := iter.Pull(seq)
	defer func() {
		if !s.runOnLoop(stop) {
			stop() // the loop has ended: no other goroutine uses its state
		}
	}()
	piece := make([]T, 0, chunkItems)
	for more := true; more && a.err == nil; {
		asked := s.runOnLoop(func() {
			piece = piece[:0]
			for more && len(piece) < chunkItems {
				var v T
				if v, more = next(); more {
					piece = append(piece, v)
				}
			}
		})
		if !asked {
			a.err = errServerEnded
			return
		}
		for _, v := range piece {
			use(v)
		}
		if a.err == nil && isClosed(a.aborted) {
			a.err = net.ErrClosed
		}
	}
}

// pair is a value of an iter.Seq2.
type pair[A, B any] struct {
	a A
	b B
}

// pairs turns an iter.Seq2 into an iter.Seq of pairs. It takes a function that creates the
// sequence, since only the loop may call that.
func pairs[A, B any](seq func() iter.Seq2[A, B]) iter.Seq[pair[A, B]] {
	return func(yield func(pair[A, B]) bool) {
		for a, b := range seq() {
			if !yield(pair[A, B]{a, b}) {
				return
			}
		}
	}
}

// acquireListSlot waits for the single slot of the words that keep a list while they
// answer, so that many clients that ask at once do not fill the memory. It returns a
// function that releases the slot, or nil if it did not become free in time, or the connection
// has ended. A client that reads slowly must not keep it, so the timeout is for all writes until
// then.
func (s *Server) acquireListSlot(a *answer) (release func()) {
	a.pause()
	defer a.resume()
	t := time.NewTimer(a.timeout)
	defer t.Stop()
	select {
	case s.listSlot <- struct{}{}:
		a.listing, a.left = true, a.timeout
		return func() {
			a.listing = false
			<-s.listSlot
		}
	case <-a.aborted:
		a.err = net.ErrClosed
	case <-s.done:
	case <-t.C:
		a.text("Another client is asking for this now, try again.\n")
	}
	return nil
}

// hex returns an id as ZooKeeper writes it.
func hex(id int64) string { return "0x" + strconv.FormatUint(uint64(id), 16) }

// javaMillis returns a duration in milliseconds, as Java writes a double that was rounded
// to four decimal places.
func javaMillis(d time.Duration) string {
	s := strconv.FormatFloat(math.Round(float64(d.Microseconds())*10)/1e4, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}
