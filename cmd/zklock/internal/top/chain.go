package top

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/cmd/zklock/internal/screen"
	"github.com/zklock/zklock/cmd/zklock/internal/span"
	"github.com/zklock/zklock/internal/legible"
	"github.com/zklock/zklock/internal/survey"
)

// strokes are what a chain is drawn with: the sides of a link that has one entry, or
// begins, goes on, ends; and what joins it to the one before, for which it waits.
type strokes struct{ one, first, more, last, join string }

func (m *Model) strokes() strokes {
	if m.ASCII {
		return strokes{one: "[ ", first: "/ ", more: "| ", last: "\\ ", join: "^"}
	}
	return strokes{one: "■ ", first: "┏ ", more: "┃ ", last: "┗ ", join: "▲"}
}

// detailRows is how many rows at the end tell of the selected entry.
const detailRows = 4

// chain is a lock's queue: those who hold, then behind whom who waits. Those who
// hold together, or will, are one link of it.
func (m *Model) chain(body int) (head screen.Line, lines []screen.Line) {
	l := m.current()
	head = screen.Line{{Text: m.short(m.lock), Style: screen.Bold}}
	if l == nil {
		return head, []screen.Line{nil, m.say("nobody holds it or waits for it now; esc goes back")}
	}
	head = append(head, screen.Piece{Text: "  " + m.about(l)})
	at := max(0, slices.IndexFunc(l.Entries, func(e survey.Entry) bool { return e.Node == m.entry }))
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

// about says in a few words what a lock is.
func (m *Model) about(l *survey.Lock) string {
	text := strings.Join(l.Layouts, ", ")
	if l.Permits > 0 {
		text += fmt.Sprintf(", %d of %d permits held", len(l.Holders()), l.Permits)
	}
	return text
}

// history is what happened to the lock whose chain is shown, since this began.
func (m *Model) history() screen.Line {
	if m.lock == "" || m.History == nil || m.help {
		return nil
	}
	h := m.History(m.lock)
	if h.Grants == 0 {
		return nil
	}
	text := fmt.Sprintf("since %s: %s", h.Since.Local().Format("15:04"), count(int(h.Grants), "grant"))
	if h.Wait.Count > 0 {
		text += fmt.Sprintf(", wait p50 %s p99 %s", short(h.Wait.P50), short(h.Wait.P99))
	}
	if h.Hold.Count > 0 {
		text += fmt.Sprintf(", held p50 %s p99 %s", short(h.Hold.P50), short(h.Hold.P99))
	}
	if h.Losses > 0 {
		text += fmt.Sprintf(", %d lost", h.Losses)
	}
	return screen.Plain(text, screen.Dim)
}

// links draws the entries, and says in which row the selected one is.
func (m *Model) links(l *survey.Lock, selected int) (lines []screen.Line, row int) {
	s := m.strokes()
	for i := 0; i < len(l.Entries); {
		n := m.link(l.Entries[i:])
		if i > 0 && l.Entries[i].Mode != zklock.Stray {
			lines = append(lines, screen.Plain("  "+s.join, screen.Dim))
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

// link counts the entries at the beginning that make one link: all that hold, shared
// ones in a row, and the two that one attempt made.
func (m *Model) link(entries []survey.Entry) int {
	first := entries[0]
	n := 1
	for ; n < len(entries); n++ {
		e := entries[n]
		same := first.Holder && e.Holder || !first.Holder && !e.Holder &&
			(first.Mode == zklock.Shared && e.Mode == zklock.Shared || first.Turn > 0 && first.Turn == e.Turn)
		if !same {
			break
		}
	}
	return n
}

// entryLine is one entry of the chain.
func (m *Model) entryLine(e survey.Entry, side string, selected bool) screen.Line {
	turn, when, style := "", "", screen.Style(0)
	switch {
	case e.Mode == zklock.Stray:
		turn, when, style = "stray", m.ago(e.Since), screen.Yellow
	case e.Holder:
		turn, when, style = "holds", m.heldFor(e.Granted, e.Since), screen.Green
	default:
		turn, when = span.Ordinal(e.Turn), m.ago(e.Since)
	}
	mark := "  "
	if selected {
		mark, style = "> ", style|screen.Reverse
	}
	free := m.width - 1 - 2 - 2 - 7 - 10 - 9 - 3*1
	who := max(8, free*55/100)
	fit := func(text string, width int) string { return screen.Fit(text, width, m.dots()) }
	text := fit(turn, 7) + fit(survey.Who(e.Entry), who) + " " + fit(dash(survey.Shorten(e.Owner.Command, survey.Most)), max(4, free-who)) + " " +
		fit(string(e.Mode), 10) + fmt.Sprintf(" %8s", when)
	return screen.Line{{Text: mark + side}, {Text: text, Style: style}}
}

// details are what the chain has no room for, of one entry.
func (m *Model) details(l *survey.Lock, e survey.Entry) []screen.Line {
	whose := "session " + survey.SessionID(e.Session)
	if e.Session == 0 {
		whose = "belongs to no session: nobody will remove it"
	}
	if e.Holder {
		whose = fmt.Sprintf("token %d, %s", e.Token, whose)
	}
	if e.Owner.User != "" {
		whose += ", user " + survey.Shorten(e.Owner.User, survey.Most)
	}
	came := e.Recipe.String() + ", came " + e.Since.Local().Format("2006-01-02 15:04:05")
	if e.Revoked {
		came += ", was asked to give it back"
	}
	warning := ""
	if len(l.Warnings) > 0 {
		warning = "warning: " + l.Warnings[0]
		if more := len(l.Warnings) - 1; more > 0 {
			warning = fmt.Sprintf("%d warnings: %s", more+1, l.Warnings[0])
		}
	}
	fit := func(text string) string { return strings.TrimRight(screen.Fit(text, m.width-1, m.dots()), " ") }
	return []screen.Line{
		screen.Plain(fit(whose), screen.Dim),
		screen.Plain(fit(came), screen.Dim),
		screen.Plain(fit(legible.Path(e.Node)), screen.Dim),
		screen.Plain(fit(warning), screen.Yellow),
	}
}

// dash stands for what is not known.
func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
