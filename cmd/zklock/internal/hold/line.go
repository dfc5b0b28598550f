package hold

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/cmd/zklock/internal/cli"
	"github.com/zklock/zklock/cmd/zklock/internal/process"
	"github.com/zklock/zklock/inspect"
	"github.com/zklock/zklock/internal/legible"
)

// Times of the waiting line. A wait shorter than lineAfter prints nothing.
const (
	lineAfter   = 300 * time.Millisecond
	lineRefresh = time.Second
	lineInspect = 5 * time.Second // time between two reads of the queue
	lineAnswer  = 2 * time.Second // a read that takes longer is reported as no answer
)

// waitLine shows a user the progress of a wait.
type waitLine struct {
	out      io.Writer
	terminal bool // show one line that changes; otherwise print the line once
	width    func() int
	link     *process.Link
	servers  string // suffix that names the servers, for a log
	quiet    bool   // outside a terminal, print only warnings about other clients
	// report gets the queue, the session of this client, and an error while the servers do not
	// answer, instead of a line. It may be nil.
	report func(entries []zklock.Entry, session int64, failure error)
}

// newWaitLine returns a waiting line on standard error. With -E 0, a lock that is held is no
// problem, and cron would mail the line.
func newWaitLine(link *process.Link, s *cli.Settings) *waitLine {
	return &waitLine{
		out: cli.Stderr, terminal: cli.ObeysSequences(2), link: link, servers: s.ServersSuffix(),
		quiet: s.Conflict == 0, width: cli.ErrorWidth,
	}
}

// start shows the line for a lock of c in a goroutine, which has ended when stop returns.
func (w *waitLine) start(ctx context.Context, c *zklock.Client, l *zklock.Lock, name string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.run(ctx, c, l, name)
	}()
	return func() {
		cancel()
		<-ended
	}
}

// run shows the line until ctx ends.
func (w *waitLine) run(ctx context.Context, c *zklock.Client, l *zklock.Lock, name string) {
	timer := time.NewTimer(lineAfter)
	defer timer.Stop()
	var entries []zklock.Entry
	var session int64 // of this client when the entries were read
	var inspected time.Time
	var seen pace
	var silence outage
	shown, answers, warned := false, true, false
	for {
		select {
		case <-ctx.Done():
			if shown && w.terminal {
				fmt.Fprint(w.out, cli.EraseLine)
			}
			if silence.err != nil && !unanswered(c.Health()) && w.report == nil && w.visible() && w.talks() {
				w.warn("the servers answer again")
			}
			return
		case <-timer.C:
		}
		// Every waiter reads all entries, so it does so less often than it refreshes
		// the times in the line.
		if time.Since(inspected) >= lineInspect && (w.terminal || !shown) {
			read, cancel := context.WithTimeout(ctx, lineAnswer)
			got, err := l.Inspect(read)
			cancel()
			if err == nil {
				entries, session, inspected = got, c.Health().Session, time.Now()
				_, position := ownQueue(byPath(entries), session)
				seen.observe(position, inspected)
			}
			answers = !errors.Is(err, context.DeadlineExceeded) // another error is an answer
		}
		if ctx.Err() != nil {
			continue
		}
		timer.Reset(lineRefresh)
		if w.report != nil {
			silence.observe(c.Health(), name, w.servers)
			w.report(entries, session, silence.err)
			continue
		}
		if !w.visible() {
			continue
		}
		if warning := overlookedBy(entries, session); warning != "" && !warned {
			w.warn("%s: %s%s", name, warning, w.servers)
			warned = true
		}
		if text := silence.observe(c.Health(), name, w.servers); text != "" && w.talks() {
			w.warn("%s", text)
		}
		// A log gets one line, not one per second.
		if shown && !w.terminal {
			continue
		}
		text := describe(name, entries, session, time.Now())
		if left := seen.left(time.Now()); left > 0 {
			text += fmt.Sprintf(" (about %s left)", cli.ShortDuration(left))
		}
		if !answers {
			text += " (no answer from the servers)"
		}
		if w.terminal {
			fmt.Fprint(w.out, cli.EraseLine, cli.Cut("zklock: "+text, w.width()-1))
		} else if w.talks() {
			fmt.Fprintf(w.out, "zklock: %s%s\n", text, w.servers)
		}
		shown = true
	}
}

// visible reports whether the line may write. In the background, another job has the
// terminal, and its user may be typing.
func (w *waitLine) visible() bool { return !w.terminal || w.link.Foreground() }

// talks reports whether the line may print that the wait continues.
func (w *waitLine) talks() bool { return w.terminal || !w.quiet }

// warn prints a message above the line.
func (w *waitLine) warn(format string, args ...any) {
	fmt.Fprint(w.out, w.erase(), cli.Warning(format, args...))
}

// outage follows whether the servers answer a client that waits.
type outage struct {
	since time.Time // when they were first found not to answer; zero while they answer
	err   error     // nil before it was reported
}

// observe returns the message that is due for a state of the client, or "". There is one
// when the servers have not answered for lineAnswer, and one when they answer again.
func (o *outage) observe(h zklock.Health, name, servers string) string {
	switch {
	case !unanswered(h):
		ended := o.err != nil
		*o = outage{}
		if ended {
			return "the servers answer again; still waiting for " + name
		}
	case o.since.IsZero():
		o.since = time.Now()
	case o.err == nil && time.Since(o.since) >= lineAnswer:
		o.err = errUnanswered
		text := fmt.Sprintf("reconnecting: %v; still waiting for %s%s", errUnanswered, name, servers)
		if h.Err != nil {
			o.err = fmt.Errorf("%w: %w", errUnanswered, h.Err)
			text += fmt.Sprintf(": %v", h.Err)
		}
		return text
	}
	return ""
}

// erase returns the text that erases the line.
func (w *waitLine) erase() string {
	if w.terminal {
		return cli.EraseLine
	}
	return ""
}

// isOf reports whether an entry is the one of a session. Host name and process id do not tell: in
// containers, several processes can have the same ones. Session 0 is that of a client without a
// session, and of entries that belong to none.
func isOf(e zklock.Entry, session int64) bool { return session != 0 && e.Session == session }

// overlookedBy returns a warning if a client of kazoo or Curator is in the queue, and this
// session has an entry there but none with a name that the client waits for. It returns ""
// otherwise.
func overlookedBy(entries []zklock.Entry, session int64) string {
	kazoo, curator, mine, forKazoo, forCurator := false, false, false, false, false
	for _, e := range entries {
		recipe := inspect.RecipeOf(e)
		switch {
		case isOf(e, session):
			mine = true
			forKazoo = forKazoo || recipe.KazooName()
			forCurator = forCurator || recipe.CuratorName()
		case recipe.Library == "kazoo" && recipe.KazooName():
			kazoo = true
		case recipe.Library == "Curator" && recipe.CuratorName():
			curator = true
		}
	}
	switch {
	case mine && kazoo && !forKazoo:
		return "kazoo clients do not wait for this client unless they set extra_lock_patterns; give --layout kazoo, or --layout mixed if Curator clients use the lock too"
	case mine && curator && forKazoo && !forCurator:
		return "Curator clients do not wait for this client; give --layout curator, or --layout mixed if kazoo clients use the lock too"
	}
	return ""
}

// describe returns the line for a session in the queue of the lock called name. Of several
// locks, it describes the first one that the session waits for.
func describe(name string, entries []zklock.Entry, session int64, now time.Time) string {
	text := "waiting for " + name
	if len(entries) == 1 && blocksNodeLock(entries[0]) {
		return text + ": its znode exists and belongs to no session"
	}
	queues := byPath(entries)
	queue, position := ownQueue(queues, session)
	if queue == nil {
		return text
	}
	if len(queues) > 1 {
		text += ", at " + legible.Path(strings.TrimPrefix(queue[0].Path, cli.NamesRoot+"/"))
	}
	if position > 0 {
		text += fmt.Sprintf(": position %d", position)
	}
	return text + heldBy(queue, now)
}

// ownQueue returns the first queue in which a session waits, and its position there, which is
// 0 for a node lock. It returns nil if there is none.
func ownQueue(queues [][]zklock.Entry, session int64) ([]zklock.Entry, int) {
	for _, queue := range queues {
		position := waitPosition(queue, session)
		nodeLock := queue[0].Node == queue[0].Path && queue[0].Holder // it has no queue
		if position > 0 || nodeLock {
			return queue, position
		}
	}
	return nil, 0
}

// blocksNodeLock reports whether an entry is a znode at the path of a node lock that
// belongs to no session.
func blocksNodeLock(e zklock.Entry) bool { return e.Node == e.Path && e.Mode == zklock.Stray }

// byPath splits the entries of several locks, which are sorted by lock.
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

// waitPosition returns the position of a session among the waiters, counted from 1, or 0 if it
// does not wait.
func waitPosition(queue []zklock.Entry, session int64) int {
	position := 0
	for i, e := range queue {
		if e.Mode == zklock.Stray || e.Holder {
			continue
		}
		if i == 0 || !inspect.SameAcquire(queue[i-1], e) {
			position++
		}
		if isOf(e, session) {
			return position
		}
	}
	return 0
}

// heldBy returns a text that names the first holder and says for how long it has held the
// lock, or "" if no client holds it.
func heldBy(queue []zklock.Entry, now time.Time) string {
	sessions := map[int64]bool{} // a client can hold with several entries
	for _, e := range queue {
		if e.Holder {
			sessions[e.Session] = true
		}
	}
	first := firstHolder(queue)
	if first == nil {
		return ""
	}
	text := ", held by " + cli.DescribeOwner(*first)
	if others := len(sessions) - 1; others > 0 {
		text += fmt.Sprintf(" +%d", others)
	}
	return text + " for " + cli.ShortDuration(now.Sub(first.Since))
}

// firstHolder returns the first entry that holds the lock, or nil.
func firstHolder(queue []zklock.Entry) *zklock.Entry {
	i := slices.IndexFunc(queue, func(e zklock.Entry) bool { return e.Holder })
	if i < 0 {
		return nil
	}
	return &queue[i]
}
