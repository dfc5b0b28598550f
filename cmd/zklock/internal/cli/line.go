package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/cmd/zklock/internal/front"
	"github.com/zklock/zklock/cmd/zklock/internal/span"
	"github.com/zklock/zklock/internal/survey"
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
	on       string // which servers, for a log
}

// newWaitLine writes to standard error.
func newWaitLine(link *front.Link, me zklock.Owner, on string) *waitLine {
	return &waitLine{
		out: os.Stderr, terminal: term.IsTerminal(2), link: link, me: me, on: on,
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
		// The line's time runs on by itself; the queue is asked for seldom, since
		// all who wait do so and each reads all entries.
		if time.Since(asked) >= lineAsk {
			if got, err := l.Inspect(ctx); err == nil {
				entries, asked = got, time.Now()
			}
		}
		if ctx.Err() != nil {
			continue
		}
		text := describe(name, entries, w.me, time.Now())
		// A log gets one line, not one a second.
		if !w.terminal {
			fmt.Fprintf(w.out, "zklock: %s%s\n", text, w.on)
			return
		}
		// In the background the terminal is somebody else's, who may be typing.
		if w.link.Foreground() {
			fmt.Fprint(w.out, eraseLine, cut("zklock: "+text, w.width()-1))
			shown = true
		}
		timer.Reset(lineRefresh)
	}
}

// describe says where me is in the queue of the lock called name, and who
// holds it. Of several locks it is the first one that is waited for.
func describe(name string, entries []zklock.Entry, me zklock.Owner, now time.Time) string {
	text := "waiting for " + name
	if len(entries) == 1 && nobodys(entries[0]) {
		return text + ": there is a znode of that name that belongs to no session"
	}
	queues := byPath(entries)
	for _, queue := range queues {
		place := inLine(queue, me)
		oneNode := queue[0].Node == queue[0].Path && queue[0].Holder // it has no line
		if place == 0 && !oneNode {
			continue
		}
		if len(queues) > 1 {
			text += ", at " + strings.TrimPrefix(queue[0].Path, namesRoot+"/")
		}
		if place > 0 {
			text += ": " + span.Ordinal(place) + " in line"
		}
		return text + behind(queue, now)
	}
	return text
}

// byPath splits the entries of several locks, which come one after another.
func byPath(entries []zklock.Entry) [][]zklock.Entry {
	var all [][]zklock.Entry
	for i := 0; i < len(entries); {
		n := i + 1
		for n < len(entries) && entries[n].Path == entries[i].Path {
			n++
		}
		all = append(all, entries[i:n])
		i = n
	}
	return all
}

// inLine is which of those who wait me is, counted from 1; 0 if it does not wait.
func inLine(queue []zklock.Entry, me zklock.Owner) int {
	place := 0
	for i, e := range queue {
		if e.Mode == zklock.Stray || e.Holder {
			continue
		}
		if i == 0 || !survey.Together(queue[i-1], e) {
			place++
		}
		if e.Owner.Host == me.Host && e.Owner.PID == me.PID {
			return place
		}
	}
	return 0
}

// behind says who holds, since when.
func behind(queue []zklock.Entry, now time.Time) string {
	var holders []zklock.Entry
	for _, e := range queue {
		if e.Holder {
			holders = append(holders, e)
		}
	}
	if len(holders) == 0 {
		return ""
	}
	text := " behind " + who(holders[0])
	if others := differing(holders) - 1; others > 0 {
		text += fmt.Sprintf(" +%d", others)
	}
	return text + " since " + span.Short(now.Sub(holders[0].Since))
}

// who names the maker of an entry as well as can be known.
func who(e zklock.Entry) string { return survey.Who(e) }

// differing counts holders rather than entries: one of several permits, or in the
// mixed layout, has more than one. It goes by sessions.
func differing(entries []zklock.Entry) int {
	sessions := map[int64]bool{}
	for _, e := range entries {
		sessions[e.Session] = true
	}
	return len(sessions)
}

// account is the maker's user and command what it runs, with a dash for what is not
// known.
func account(e zklock.Entry) string { return dash(survey.Shorten(e.Owner.User, survey.Most)) }
func command(e zklock.Entry) string { return dash(survey.Shorten(e.Owner.Command, survey.Most)) }

// cut shortens text to n characters.
func cut(text string, n int) string {
	runes := []rune(text)
	if n < 1 || len(runes) <= n {
		return text
	}
	return string(runes[:n])
}
