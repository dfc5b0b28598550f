package locks

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/cmd/zklock/internal/cli"
	"github.com/zklock/zklock/inspect"
	"github.com/zklock/zklock/internal/legible"
)

// strokes are the characters that draw a chain. one marks a link with one entry; first,
// more, and last mark the entries of a longer link; join connects a link to its
// predecessor.
type strokes struct{ one, first, more, last, join string }

func (m *Model) strokes() strokes {
	if m.ASCII {
		return strokes{one: "[ ", first: "/ ", more: "| ", last: "\\ ", join: "^"}
	}
	return strokes{one: "■ ", first: "┏ ", more: "┃ ", last: "┗ ", join: "▲"}
}

// detailRows is the number of rows at the end that describe the selected entry.
const detailRows = 4

// chain returns the lines of a lock's queue: the holders, then the waiters in order.
// Entries that hold together, or will, form one link.
func (m *Model) chain(body int) (head Line, lines []Line) {
	l := m.current()
	head = Line{{Text: m.short(m.lock), Style: Bold}}
	if l == nil {
		if m.snap != nil {
			if why := m.snap.Unknown(m.lock); why != nil {
				return head, []Line{nil, m.say("it may be held: " + why.Error()), m.say("esc: back to the list")}
			}
		}
		return head, []Line{nil, m.say("no client holds it or waits for it now; esc: back to the list")}
	}
	head = append(head, Piece{Text: "  " + m.about(l)})
	at := max(0, slices.IndexFunc(l.Entries, func(e inspect.Entry) bool { return e.Node == m.entry }))
	drawn, row := m.links(l, at)
	room := max(1, body-detailRows)
	m.scroll = window(m.scroll, row, room, len(drawn))
	if row == 1 && m.scroll == 1 {
		m.scroll = 0
	}
	lines = drawn[m.scroll:min(len(drawn), m.scroll+room)]
	for len(lines) < room {
		lines = append(lines, nil)
	}
	return head, append(slices.Clone(lines), m.details(l, l.Entries[min(at, len(l.Entries)-1)])...)
}

// about returns a short description of a lock.
func (m *Model) about(l *inspect.Lock) string {
	text := strings.Join(l.Layouts, ", ")
	if l.Permits > 0 {
		text += fmt.Sprintf(", %d of %d permits held", l.HeldPermits(), l.Permits)
	}
	return text
}

// history returns a summary of the grants and losses of the shown lock since top started.
func (m *Model) history() Line {
	if m.lock == "" || m.History == nil || m.help {
		return nil
	}
	h := m.History(m.lock)
	if h.Grants == 0 {
		return nil
	}
	text := fmt.Sprintf("since %s: %s", h.Since.Local().Format("15:04"), cli.Count(int(h.Grants), "grant"))
	if h.Wait.Count > 0 {
		text += fmt.Sprintf(", wait p50 %s p99 %s", short(h.Wait.P50), short(h.Wait.P99))
	}
	if h.Hold.Count > 0 {
		text += fmt.Sprintf(", held p50 %s p99 %s", short(h.Hold.P50), short(h.Hold.P99))
	}
	if h.Losses > 0 {
		text += fmt.Sprintf(", %d lost", h.Losses)
	}
	return Plain(text, Dim)
}

// links returns the lines of the entries and the row of the selected one.
func (m *Model) links(l *inspect.Lock, selected int) (lines []Line, row int) {
	s := m.strokes()
	for i := 0; i < len(l.Entries); {
		n := m.link(l.Entries[i:])
		if i > 0 && l.Entries[i].Mode != zklock.Stray {
			lines = append(lines, Plain("  "+s.join, Dim))
		}
		for j := i; j < i+n; j++ {
			side := s.more
			switch {
			case n == 1:
				side = s.one
			case j == i:
				side = s.first
			case j == i+n-1:
				side = s.last
			}
			if j == selected {
				row = len(lines)
			}
			lines = append(lines, m.entryLine(l.Entries[j], side, j == selected))
		}
		i += n
	}
	return lines, row
}

// link returns how many of the first entries form one link: all holders, consecutive
// shared waiters, or two entries of one attempt.
func (m *Model) link(entries []inspect.Entry) int {
	first := entries[0]
	n := 1
	for ; n < len(entries); n++ {
		e := entries[n]
		same := first.Holder && e.Holder || !first.Holder && !e.Holder &&
			(first.Mode == zklock.Shared && e.Mode == zklock.Shared || first.Position > 0 && first.Position == e.Position)
		if !same {
			break
		}
	}
	return n
}

// entryLine returns the line of one entry.
func (m *Model) entryLine(e inspect.Entry, side string, selected bool) Line {
	position, when, style := "", "", Style(0)
	switch {
	case e.Mode == zklock.Stray:
		position, when, style = "stray", m.ago(e.Since), Yellow
		if e.Recipe.Kind != "" {
			position = "other"
		}
	case e.Holder:
		position, when, style = "holds", m.heldFor(e.Granted, e.Since), Green
	default:
		position, when = strconv.Itoa(e.Position), m.ago(e.Since)
	}
	mark := "  "
	if selected {
		mark, style = "> ", style|Reverse
	}
	free := m.width - 1 - 2 - 2 - 7 - 10 - 8 - 3*2
	who := max(8, free*55/100)
	text := m.fitCell(position, 7) + m.fitCell(inspect.OwnerName(e.Entry), who) + "  " +
		m.fitCell(cli.OwnerCommand(e.Entry), max(4, free-who)) + "  " +
		m.fitCell(string(e.Mode), 10) + fmt.Sprintf("  %8s", when)
	return Line{{Text: mark + side}, {Text: text, Style: style}}
}

// details returns the lines that describe the selected entry in full.
func (m *Model) details(l *inspect.Lock, e inspect.Entry) []Line {
	whose := "session " + inspect.FormatSession(e.Session)
	if e.Session == 0 {
		whose = "belongs to no session, so no server removes it"
	}
	if e.Holder {
		whose = fmt.Sprintf("token %d, %s", e.Token, whose)
	}
	if e.Owner.User != "" {
		whose += ", user " + inspect.Truncate(e.Owner.User, inspect.MaxOwnerName)
	}
	text := e.Recipe.String() + ", created " + e.Since.Local().Format("2006-01-02 15:04:05")
	if e.Revoked {
		text += ", was asked to release it"
	}
	warning := ""
	if len(l.Warnings) > 0 {
		warning = "warning: " + l.Warnings[0]
		if more := len(l.Warnings) - 1; more > 0 {
			warning = fmt.Sprintf("%d warnings: %s", more+1, l.Warnings[0])
		}
	}
	fit := func(text string) string { return strings.TrimRight(cli.Fit(text, m.width-1, m.dots()), " ") }
	return []Line{
		Plain(fit(whose), Dim),
		Plain(fit(text), Dim),
		Plain(fit(legible.Path(e.Node)), Dim),
		Plain(fit(warning), Yellow),
	}
}
