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
	// pieceItems is how many watches, sessions or connections a word looks at
	// between two batches; it holds the loop for well below a millisecond.
	pieceItems = 2048
	// pieceBytes is how much of an answer is kept before it is written.
	pieceBytes = 32 << 10
)

// errEnded ends an answer because the server has ended.
var errEnded = errors.New("zkserver: the server ended")

// answer is the answer to a four-letter word. It is written as it grows, by the
// goroutine of the connection that asked, so that a list of a million watches
// takes no memory to speak of; a client that does not read is cut off. A failure
// is kept in err and makes everything after it do nothing.
type answer struct {
	nc      net.Conn
	timeout time.Duration // for pieceBytes
	buf     []byte
	err     error
}

// text adds to the answer.
func (a *answer) text(s string) {
	if a.err != nil {
		return
	}
	a.buf = append(a.buf, s...)
	if len(a.buf) >= pieceBytes {
		a.flush()
	}
}

// flush writes what there is.
func (a *answer) flush() {
	if a.err != nil || len(a.buf) == 0 {
		return
	}
	if a.err = a.nc.SetWriteDeadline(time.Now().Add(a.timeout)); a.err == nil {
		_, a.err = a.nc.Write(a.buf)
	}
	a.buf = a.buf[:0]
}

// inPieces runs a sequence over the loop's state on the loop, some values at a
// time, and gives each to use on the calling goroutine. It stops when the
// answer has failed.
func inPieces[T any](s *Server, a *answer, seq iter.Seq[T], use func(T)) {
	next, stop := iter.Pull(seq)
	defer func() {
		if !s.ask(stop) {
			stop() // the loop has ended: nobody else touches its state
		}
	}()
	piece := make([]T, 0, pieceItems)
	for more := true; more && a.err == nil; {
		asked := s.ask(func() {
			piece = piece[:0]
			for more && len(piece) < pieceItems {
				var v T
				if v, more = next(); more {
					piece = append(piece, v)
				}
			}
		})
		if !asked {
			a.err = errEnded
			return
		}
		for _, v := range piece {
			use(v)
		}
	}
}

// pair is a value of an iter.Seq2.
type pair[A, B any] struct {
	a A
	b B
}

// paired makes one sequence of two. It takes a function that makes the
// sequence, since that is of the loop as well.
func paired[A, B any](seq func() iter.Seq2[A, B]) iter.Seq[pair[A, B]] {
	return func(yield func(pair[A, B]) bool) {
		for a, b := range seq() {
			if !yield(pair[A, B]{a, b}) {
				return
			}
		}
	}
}

// alone waits for the one place among the words that keep a list for as long
// as they answer, so that many who ask at once do not fill the memory. It
// returns how to give the place back, nil if none became free in time.
func (s *Server) alone(a *answer) (leave func()) {
	t := time.NewTimer(a.timeout)
	defer t.Stop()
	select {
	case s.listing <- struct{}{}:
		return func() { <-s.listing }
	case <-s.done:
	case <-t.C:
		a.text("Others ask for this at the moment, try again.\n")
	}
	return nil
}

// hex is an id as ZooKeeper's words write it.
func hex(id int64) string { return "0x" + strconv.FormatUint(uint64(id), 16) }

// javaMillis writes a duration in milliseconds as Java writes a double that
// was rounded to four places.
func javaMillis(d time.Duration) string {
	s := strconv.FormatFloat(math.Round(float64(d.Microseconds())*10)/1e4, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}
