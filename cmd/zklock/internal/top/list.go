package top

import (
	"fmt"
	"strings"
	"time"

	"github.com/zklock/zklock/cmd/zklock/internal/screen"
	"github.com/zklock/zklock/cmd/zklock/internal/span"
	"github.com/zklock/zklock/internal/legible"
	"github.com/zklock/zklock/internal/survey"
)

// The rows that are not the list's: title, status and column heads above, keys below.
const (
	above = 3
	below = 1
)

// Lines is the whole screen.
func (m *Model) Lines() []screen.Line {
	body := m.height - above - below
	var head screen.Line
	var lines []screen.Line
	keys := ""
	switch {
	case m.help:
		head, lines, keys = screen.Plain("", 0), m.helpLines(), "any key goes back"
	case m.lock != "":
		head, lines = m.chain(body)
		keys = "q quit  esc back  up/down select  space pause  ? help"
	default:
		head, lines = m.list(body)
		keys = "q quit  enter queue  / filter  s sort: " + m.order() + "  r reverse  space pause  ? help"
	}
	if m.typing {
		keys = "filter: " + m.filter + "_   enter keeps it, esc drops it"
	}
	all := []screen.Line{m.title(), m.state(), head}
	all = append(all, lines[:min(body, len(lines))]...)
	for len(all) < m.height-below {
		all = append(all, nil)
	}
	return append(all, screen.Plain(screen.Fit(keys, m.width-1, m.dots()), screen.Dim))
}

// order names the order of the list.
func (m *Model) order() string {
	if m.Sort == "" {
		return byPath
	}
	return m.Sort
}

// dots stand for text that was cut.
func (m *Model) dots() string {
	if m.ASCII {
		return "~"
	}
	return "…"
}

// title is the first line: how much there is.
func (m *Model) title() screen.Line {
	held, waiting := 0, 0
	for _, s := range m.rows {
		waiting += s.Waiting
		if s.Holders > 0 {
			held++
		}
	}
	left := "zklock top " + legible.Path(m.status.Prefix)
	if m.filter != "" {
		left += " filter " + m.filter
	}
	right := fmt.Sprintf("%s, %d held, %d waiting  %s", count(len(m.rows), "lock"), held, waiting, m.now.Format("15:04:05"))
	room := m.width - 1 - screen.Columns(right) - 2
	return screen.Line{{Text: screen.Fit(left, max(0, room), m.dots()), Style: screen.Bold}, {Text: "  " + right}}
}

// state is the second line: how well that is known, deadlocks, and a lock's history.
func (m *Model) state() screen.Line {
	s := m.status
	switch {
	case m.failed != "":
		return screen.Plain("stopped: "+m.failed, screen.Red|screen.Bold)
	case !s.Connected && !s.Heard.IsZero():
		return screen.Plain(fmt.Sprintf("no server for %s: this is how it was then", span.Short(m.now.Sub(s.Heard))), screen.Red|screen.Bold)
	case !s.Connected:
		return screen.Plain("connecting", screen.Yellow)
	case m.paused:
		return screen.Plain("paused: this is how it was at "+m.snap.At.Format("15:04:05")+"; space goes on", screen.Yellow|screen.Bold)
	case len(m.circles) > 0:
		return m.deadlock()
	case !s.Walked:
		return screen.Plain("looking for locks", screen.Yellow)
	case !s.Complete:
		return screen.Plain("not all locks: "+s.Why, screen.Yellow)
	case s.Behind > 0:
		return screen.Plain(fmt.Sprintf("%s changed and not read yet, to keep below %d reads a second", count(s.Behind, "lock"), s.ReadRate), screen.Yellow)
	case !s.Live:
		return screen.Plain("the servers do not tell of changes: they are asked now and then", screen.Dim)
	}
	return m.history()
}

// say is a message in the place of what there is not.
func (m *Model) say(text string) screen.Line {
	return screen.Plain(strings.TrimRight(screen.Fit("  "+text, m.width-1, m.dots()), " "), 0)
}

// deadlock tells of the first circle.
func (m *Model) deadlock() screen.Line {
	var parts []string
	for _, link := range m.circles[0].Circle {
		parts = append(parts, survey.Who(link.Waits.Entry)+" waits for "+m.short(link.Waits.Path))
	}
	word := "DEADLOCK: "
	if n := len(m.circles); n > 1 {
		word = fmt.Sprintf("%d DEADLOCKS: ", n)
	} else if !m.circles[0].Plain {
		word = "perhaps a deadlock: "
	}
	return screen.Plain(word+strings.Join(parts, ", "), screen.Red|screen.Bold)
}

// short is a path for people, without what all have.
func (m *Model) short(path string) string {
	if m.Strip != "" {
		path = strings.TrimPrefix(path, m.Strip)
	}
	return legible.Path(path)
}

// columns are the widths of the list's columns.
type columns struct{ lock, mode, holder, held, queue, wait int }

// widths shares the screen among the columns: what is left over goes to the names.
func (m *Model) widths() columns {
	c := columns{mode: 9, held: 8, queue: 5, wait: 8}
	// A mark before, and two blanks between columns.
	free := m.width - 1 - 2 - c.mode - c.held - c.queue - c.wait - 5*2
	c.lock = max(8, free*6/10)
	c.holder = max(6, free-c.lock)
	return c
}

// list is the list of locks.
func (m *Model) list(body int) (head screen.Line, lines []screen.Line) {
	c := m.widths()
	head = screen.Plain(m.cells(c, "  ", "LOCK", "MODE", "HOLDER", "HELD FOR", "QUEUE", "WAITS"), screen.Bold)
	if len(m.rows) == 0 {
		switch {
		case m.filter != "":
			return head, []screen.Line{nil, m.say("no lock has that in its name or holder; esc shows all")}
		case m.status.Walked:
			return head, []screen.Line{nil, m.say("nobody holds or waits for a lock below " + legible.Path(m.status.Prefix))}
		}
		return head, nil
	}
	at := m.place()
	m.offset = window(m.offset, at, body, len(m.rows))
	for i := m.offset; i < min(m.offset+body, len(m.rows)); i++ {
		lines = append(lines, m.row(c, m.rows[i], i == at))
	}
	return head, lines
}

// window is the first of n rows that is shown, so that row at is among body ones.
func window(offset, at, body, n int) int {
	offset = min(offset, at)
	offset = max(offset, at-body+1)
	return max(0, min(offset, n-body))
}

// row is one lock.
func (m *Model) row(c columns, s survey.Summary, selected bool) screen.Line {
	mark, style := "  ", screen.Style(0)
	switch {
	case m.stuck[s.Path]:
		mark, style = "! ", screen.Red|screen.Bold
	case s.Holders == 0:
		style = screen.Yellow
	}
	if selected {
		mark, style = ">"+mark[:1], style|screen.Reverse
	}
	holder, held, wait, queue := "-", "-", "-", "-"
	if s.Holders > 0 {
		holder, held = s.Who, m.heldFor(s.Granted, s.Since)
		if s.Others > 0 {
			holder = fmt.Sprintf("+%d %s", s.Others, holder)
		}
	}
	if s.Waiting > 0 {
		queue, wait = fmt.Sprint(s.Waiting), m.ago(s.Oldest)
	}
	return screen.Plain(m.cells(c, mark, m.short(s.Path), how(s), holder, held, queue, wait), style)
}

// how says how a lock is held.
func how(s survey.Summary) string {
	switch {
	case s.Kind == survey.Node:
		return "node"
	case s.Permits > 0:
		return fmt.Sprintf("%d of %d", s.Holders, s.Permits)
	case s.Kind == survey.Semaphore:
		return count(s.Holders, "permit")
	case s.Holders > 0:
		return string(s.Mode)
	}
	return "-"
}

// cells puts a row together. Numbers are to the right.
func (m *Model) cells(c columns, mark, lock, mode, holder, held, queue, wait string) string {
	fit := func(text string, width int) string { return screen.Fit(text, width, m.dots()) }
	right := func(text string, width int) string {
		return strings.Repeat(" ", max(0, width-screen.Columns(text))) + fit(text, min(width, screen.Columns(text)))
	}
	return mark + fit(lock, c.lock) + "  " + fit(mode, c.mode) + "  " + fit(holder, c.holder) + "  " +
		right(held, c.held) + "  " + right(queue, c.queue) + "  " + right(wait, c.wait)
}

// heldFor is how long something is held: since it was seen to be granted, or at most
// since its entry was made, of which the time in line was a part.
func (m *Model) heldFor(granted, since time.Time) string {
	if !granted.IsZero() {
		return span.Short(m.now.Sub(granted))
	}
	if m.ASCII {
		return "<" + m.ago(since)
	}
	return "≤" + m.ago(since)
}

// ago is how long ago something was, by the servers' clock.
func (m *Model) ago(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return span.Short(m.now.Sub(t))
}

// count writes a number of things.
func count(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}
