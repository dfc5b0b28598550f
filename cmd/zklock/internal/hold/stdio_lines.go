package hold

import (
	"bufio"
	"io"
	"time"
)

// lastLineTime limits the wait for a program that does not read, for the last line.
const lastLineTime = time.Second

// eventLines writes events as lines, each in one write. A program that does not read
// blocks only the goroutine that writes. The methods belong to one goroutine.
type eventLines struct {
	lines   chan []byte
	written chan error // the result of each write
	busy    bool       // a line is being written
	broken  bool       // a write failed, so nothing is written any more
	pending []event    // wait for the write; see add
}

// newEventLines returns the lines that go to out. The goroutine ends with the program, or
// after close.
func newEventLines(out io.Writer) *eventLines {
	l := &eventLines{lines: make(chan []byte, 1), written: make(chan error, 1)}
	go func() {
		for line := range l.lines {
			_, err := out.Write(line)
			l.written <- err
		}
	}()
	return l
}

// close ends the goroutine once its write returns.
func (l *eventLines) close() { close(l.lines) }

// ready reports whether all events are written.
func (l *eventLines) ready() bool { return !l.busy && !l.broken && len(l.pending) == 0 }

// add appends an event. It replaces an event of the same type that was not written. A signal
// and a release request of a client do not replace each other.
func (l *eventLines) add(e event) {
	for i := range l.pending {
		if l.pending[i].Event == e.Event && (l.pending[i].Signal == "") == (e.Signal == "") {
			l.pending[i] = e
			return
		}
	}
	l.pending = append(l.pending, e)
}

// pump starts the next write, if none is in progress. safe is how long the hold is safe.
func (l *eventLines) pump(safe time.Duration) {
	if l.broken {
		l.pending = nil
	}
	if l.busy || len(l.pending) == 0 {
		return
	}
	e := l.pending[0]
	l.pending = l.pending[1:]
	if e.Event.whileHeld() {
		e.setSafe(safe)
	}
	line, err := e.encode()
	if err != nil {
		l.broken, l.pending = true, nil
		return
	}
	l.busy = true
	l.lines <- line // there is room, because no line is being written
}

// wrote records the end of a write.
func (l *eventLines) wrote(err error) {
	l.busy = false
	l.broken = l.broken || err != nil
}

// finish writes what is pending, for at most lastLineTime.
func (l *eventLines) finish() {
	timer := time.NewTimer(lastLineTime)
	defer timer.Stop()
	for l.pump(0); l.busy; l.pump(0) {
		select {
		case err := <-l.written:
			l.wrote(err)
		case <-timer.C:
			return
		}
	}
}

// releaseLine is the line with which a program releases its lock.
const releaseLine = "release"

// readReleases reads lines, and sends once for each line "release". It ignores other lines.
// The channel is closed when the input ends. The goroutine ends with the input or the
// program.
func readReleases(in io.Reader) <-chan struct{} {
	releases := make(chan struct{}, 1)
	go func() {
		defer close(releases)
		lines := bufio.NewReader(in)
		for continued := false; ; {
			line, more, err := lines.ReadLine()
			if err != nil {
				return
			}
			if !continued && !more && string(line) == releaseLine {
				select {
				case releases <- struct{}{}:
				default: // the program has said so before
				}
			}
			continued = more
		}
	}()
	return releases
}
