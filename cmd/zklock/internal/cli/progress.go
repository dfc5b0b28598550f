package cli

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Times of a progress line.
const (
	progressAfter   = 300 * time.Millisecond
	progressRefresh = time.Second
)

// Progress is a line on a terminal that tells what a command waits for. It appears after a
// moment, and changes every second. A nil Progress shows nothing.
type Progress struct {
	out        io.Writer
	foreground func() bool
	describe   func() string
	erase      chan chan struct{} // each is closed when the line is erased
	done       chan struct{}
	ended      chan struct{}
	once       sync.Once
}

// startProgress starts a line with the text of describe. The goroutine ends with Stop.
func startProgress(out io.Writer, foreground func() bool, describe func() string) *Progress {
	p := &Progress{out: out, foreground: foreground, describe: describe, erase: make(chan chan struct{}), done: make(chan struct{}), ended: make(chan struct{})}
	go p.run()
	return p
}

// Progress shows what the command does, with the time since it began, if standard error is
// a terminal that can erase it. The caller stops it before it prints anything, or calls Erase
// before.
func (s *Settings) Progress(format string, args ...any) *Progress {
	if !ObeysSequences(2) {
		return nil
	}
	what, began := fmt.Sprintf(format, args...), time.Now()
	return startProgress(Stderr, s.Link.Foreground, func() string {
		return fmt.Sprintf("%s (%s), on %s", what, ShortDuration(time.Since(began)), s.ServersText())
	})
}

// run shows the line until Stop is called. Only it writes the line.
func (p *Progress) run() {
	defer close(p.ended)
	timer := time.NewTimer(progressAfter)
	defer timer.Stop()
	shown := false
	erase := func() {
		if shown {
			fmt.Fprint(p.out, EraseLine)
			shown = false
		}
	}
	for {
		select {
		case <-p.done:
			erase()
			return
		case erased := <-p.erase:
			erase()
			close(erased)
			continue
		case <-timer.C:
		}
		// In the background, another job has the terminal, and its user may be typing.
		if p.foreground() {
			fmt.Fprint(p.out, EraseLine, Cut("zklock: "+p.describe(), ErrorWidth()-1))
			shown = true
		}
		timer.Reset(progressRefresh)
	}
}

// Erase erases the line, so that the command can print. The line appears again.
func (p *Progress) Erase() {
	if p == nil {
		return
	}
	erased := make(chan struct{})
	select {
	case p.erase <- erased:
		<-erased
	case <-p.ended:
	}
}

// Stop erases the line for good. More than one call is allowed.
func (p *Progress) Stop() {
	if p == nil {
		return
	}
	p.once.Do(func() { close(p.done) })
	<-p.ended
}
