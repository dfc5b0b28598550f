package locks

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/zklock/zklock/cmd/zklock/internal/cli"
	"github.com/zklock/zklock/inspect"
	"github.com/zklock/zklock/internal/legible"
)

// The rows around the list: title, state, and column heads above; keys below.
const (
	above = 3
	below = 1
)

// Lines returns the whole screen.
func (m *Model) Lines() []Line {
	body := m.height - above - below
	var head Line
	var lines []Line
	keys := ""
	switch {
	case m.help:
		head, lines, keys = Plain("", 0), m.helpLines(), "any key: back"
	case m.lock != "":
		head, lines = m.chain(body)
		keys = "q quit  esc back  up/down select  space pause  ? help"
	default:
		head, lines = m.list(body)
		keys = "q quit  enter queue  / filter  s sort: " + m.order() + "  r reverse  space pause  ? help"
	}
	if m.typing {
		keys = "filter: " + m.filter + "_   enter keeps it, esc clears it"
	}
	all := []Line{m.title(), m.state(), head}
	all = append(all, lines[:min(body, len(lines))]...)
	for len(all) < m.height-below {
		all = append(all, nil)
	}
	return append(all, Plain(cli.Fit(keys, m.width-1, m.dots()), Dim))
}

// order returns the name of the list's order.
func (m *Model) order() string { return cmp.Or(m.Sort, byPath) }

// dots returns the mark for text that was cut.
func (m *Model) dots() string {
	if m.ASCII {
		return "~"
	}
	return "…"
}

// title returns the first line: the prefix and the numbers of locks and waiters.
func (m *Model) title() Line {
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
	right := fmt.Sprintf("%s, %d held, %d waiting  %s", cli.Count(len(m.rows), "lock"), held, waiting, m.now.Format("15:04:05"))
	room := m.width - 1 - cli.Columns(right) - 2
	return Line{{Text: cli.Fit(left, max(0, room), m.dots()), Style: Bold}, {Text: "  " + right}}
}

// state returns the second line: the first problem with the data, a deadlock, or the
// shown lock's history.
func (m *Model) state() Line {
	s := m.status
	switch {
	case m.failed != "":
		return Plain("stopped: "+m.failed, Red|Bold)
	case !s.Connected && !s.LastContact.IsZero():
		return Plain(fmt.Sprintf("no server for %s: the data is from then", cli.ShortDuration(m.now.Sub(s.LastContact))), Red|Bold)
	case !s.Connected:
		return Plain("connecting", Yellow)
	case m.paused:
		return Plain("paused: the data is from "+m.snap.At.Format("15:04:05")+"; space continues", Yellow|Bold)
	case len(m.circles) > 0:
		return m.deadlock()
	case !s.Listed:
		return Plain("looking for locks", Yellow)
	case !s.Complete:
		return Plain("not all locks: "+s.Reason, Yellow)
	case s.Pending > 0:
		return Plain(fmt.Sprintf("%s changed but not read yet: the limit is %d reads per second", cli.Count(s.Pending, "lock"), s.MaxReadRate), Yellow)
	case !s.Watching:
		return Plain("the servers do not report changes: zklock polls them", Dim)
	}
	return m.history()
}

// say returns a message for an empty list or chain.
func (m *Model) say(text string) Line {
	return Plain(strings.TrimRight(cli.Fit("  "+text, m.width-1, m.dots()), " "), 0)
}

// deadlock returns a description of the first deadlock.
func (m *Model) deadlock() Line {
	var parts []string
	for _, link := range m.circles[0].Cycle {
		parts = append(parts, inspect.OwnerName(link.Waits.Entry)+" waits for "+m.short(link.Waits.Path))
	}
	word := "DEADLOCK: "
	if n := len(m.circles); n > 1 {
		word = fmt.Sprintf("%d DEADLOCKS: ", n)
	} else if !m.circles[0].Certain {
		word = "perhaps a deadlock: "
	}
	return Plain(word+strings.Join(parts, ", "), Red|Bold)
}

// short returns a readable path without the prefix in Strip.
func (m *Model) short(path string) string {
	return legible.Path(strings.TrimPrefix(path, m.Strip))
}

// columns holds the widths of the list's columns.
type columns struct{ lock, mode, holder, held, queue, wait int }

// widths divides the screen among the columns. Locks and holders share the rest.
func (m *Model) widths() columns {
	c := columns{mode: 9, held: 8, queue: 5, wait: 8}
	// The mark takes 2 columns, and 2 blanks separate columns.
	free := m.width - 1 - 2 - c.mode - c.held - c.queue - c.wait - 5*2
	c.lock = max(8, free*6/10)
	c.holder = max(6, free-c.lock)
	return c
}

// list returns the column heads and the rows of the list.
func (m *Model) list(body int) (head Line, lines []Line) {
	c := m.widths()
	head = Plain(m.cells(c, "  ", "LOCK", "MODE", "HOLDER", "HELD FOR", "QUEUE", "WAITS"), Bold)
	if len(m.rows) == 0 {
		switch {
		case m.filter != "":
			return head, []Line{nil, m.say("no lock or holder matches; esc shows all")}
		case m.status.Listed:
			return head, []Line{nil, m.say("no client holds or waits for a lock below " + legible.Path(m.status.Prefix))}
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

// window returns the first shown row of n, so that row at is among the body rows
// that fit.
func window(offset, at, body, n int) int {
	offset = min(offset, at)
	offset = max(offset, at-body+1)
	return max(0, min(offset, n-body))
}

// row returns the line of one lock.
func (m *Model) row(c columns, s inspect.Summary, selected bool) Line {
	mark, style := "  ", Style(0)
	switch {
	case m.stuck[s.Path]:
		mark, style = "! ", Red|Bold
	case s.Holders == 0:
		style = Yellow
	}
	if selected {
		mark, style = ">"+mark[:1], style|Reverse
	}
	holder, held, wait, queue := "-", "-", "-", "-"
	if s.Holders > 0 {
		holder, held = s.OwnerName, m.heldFor(s.Granted, s.Since)
		if s.Others > 0 {
			holder = fmt.Sprintf("+%d %s", s.Others, holder)
		}
	}
	if s.Waiting > 0 {
		queue, wait = fmt.Sprint(s.Waiting), m.ago(s.Oldest)
	}
	return Plain(m.cells(c, mark, m.short(s.Path), howHeld(s), holder, held, queue, wait), style)
}

// fitCell returns text as a cell of this width.
func (m *Model) fitCell(text string, width int) string {
	return cli.Fit(cli.OneCell(text), width, m.dots())
}

// cells joins the cells of a row. Numbers are right-aligned.
func (m *Model) cells(c columns, mark, lock, mode, holder, held, queue, wait string) string {
	fit := m.fitCell
	right := func(text string, width int) string {
		return strings.Repeat(" ", max(0, width-cli.Columns(text))) + fit(text, min(width, cli.Columns(text)))
	}
	return mark + fit(lock, c.lock) + "  " + fit(mode, c.mode) + "  " + fit(holder, c.holder) + "  " +
		right(held, c.held) + "  " + right(queue, c.queue) + "  " + right(wait, c.wait)
}

// heldFor returns how long a hold has lasted. If the grant was not seen, it returns the
// time since the entry was created, marked as an upper bound.
func (m *Model) heldFor(granted, since time.Time) string {
	if !granted.IsZero() {
		return cli.ShortDuration(m.now.Sub(granted))
	}
	if m.ASCII {
		return "<" + m.ago(since)
	}
	return "≤" + m.ago(since)
}

// ago returns how long ago t was, by the servers' clock.
func (m *Model) ago(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return cli.ShortDuration(m.now.Sub(t))
}
