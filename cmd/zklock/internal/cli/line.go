package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/cmd/zklock/internal/front"
	"github.com/zklock/zklock/cmd/zklock/internal/span"
)

// Times of the waiting line. A lock that comes at once is waited for in silence.
const (
	lineAfter   = 300 * time.Millisecond
	lineRefresh = time.Second
	lineAsk     = 5 * time.Second // how often the servers are asked for the queue
)

// eraseLine goes to the line's beginning and clears it.
const eraseLine = "\r\x1b[K"

// waitLine tells a user who waits how long the line is.
type waitLine struct {
	out      io.Writer
	terminal bool // one line that changes; else one line once
	width    func() int
	link     *front.Link
	me       zklock.Owner
}

// newWaitLine writes to standard error.
func newWaitLine(link *front.Link, me zklock.Owner) *waitLine {
	return &waitLine{
		out: os.Stderr, terminal: term.IsTerminal(2), link: link, me: me,
		width: func() int {
			if w, _, err := term.GetSize(2); err == nil && w > 0 {
				return w
			}
			return 80
		},
	}
}

// start begins to tell, on a goroutine that has ended when stop returns.
func (w *waitLine) start(ctx context.Context, l *zklock.Lock, name string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.run(ctx, l, name)
	}()
	return func() {
		cancel()
		<-ended
	}
}

// run tells until ctx ends.
func (w *waitLine) run(ctx context.Context, l *zklock.Lock, name string) {
	timer := time.NewTimer(lineAfter)
	defer timer.Stop()
	var entries []zklock.Entry
	var asked time.Time
	shown := false
	for {
		select {
		case <-ctx.Done():
			if shown {
				fmt.Fprint(w.out, eraseLine)
			}
			return
		case <-timer.C:
		}
		if time.Since(asked) >= lineAsk {
			if got, err := l.Inspect(ctx); err == nil {
				entries, asked = got, time.Now()
			}
		}
		if ctx.Err() != nil {
			continue
		}
		text := describe(name, entries, w.me, time.Now())
		if !w.terminal {
			fmt.Fprintf(w.out, "zklock: %s\n", text)
			return
		}
		if w.link.Foreground() {
			fmt.Fprint(w.out, eraseLine, cut("zklock: "+text, w.width()-1))
			shown = true
		}
		timer.Reset(lineRefresh)
	}
}

// describe says where me is in the queue of the lock called name, and who
// holds it.
func describe(name string, entries []zklock.Entry, me zklock.Owner, now time.Time) string {
	place := -1
	var head *zklock.Entry
	ahead := 0
	for i, e := range entries {
		if e.Mode == zklock.Stray {
			continue
		}
		if e.Owner.Host == me.Host && e.Owner.PID == me.PID {
			place = ahead
		}
		if head == nil {
			head = &entries[i]
		}
		ahead++
	}
	if place < 1 {
		return "waiting for " + name
	}
	return fmt.Sprintf("waiting for %s: %s in line behind %s since %s",
		name, span.Ordinal(place), who(*head), span.Short(now.Sub(head.Since)))
}

// who names the maker of an entry as well as can be known.
func who(e zklock.Entry) string {
	switch {
	case e.Owner.String() != "":
		return e.Owner.String()
	case e.Data != "":
		return cut(e.Data, 40)
	}
	return fmt.Sprintf("session 0x%x", e.Session)
}

// cut shortens text to n characters.
func cut(text string, n int) string {
	runes := []rune(text)
	if n < 1 || len(runes) <= n {
		return text
	}
	return string(runes[:n])
}
