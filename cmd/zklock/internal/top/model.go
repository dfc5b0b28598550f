package top

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/zklock/zklock/cmd/zklock/internal/screen"
	"github.com/zklock/zklock/internal/survey"
)

// What a model asks for, after a key.
type action int

const (
	stay action = iota
	quit
	suspend
	redraw
)

// The orders of the list.
const (
	byPath   = "path"
	byHeld   = "held"
	byQueue  = "queue"
	byOldest = "wait"
)

// Orders are the names of the orders of the list.
func Orders() []string { return []string{byPath, byHeld, byQueue, byOldest} }

// A Model is what is shown, and how. It is for one goroutine. The zero Model is an
// empty list.
type Model struct {
	// Sort is one of [Orders]; empty is by path.
	Sort string
	// ASCII draws without line-drawing characters.
	ASCII bool
	// Strip is left out at the beginning of paths.
	Strip string
	// History tells what happened to a lock; nil knows nothing.
	History func(path string) survey.History

	width, height int
	now           time.Time
	snap          *survey.Snapshot
	status        survey.Status
	rows          []survey.Summary // that are shown, in order
	// known are the summaries of the snapshot's locks, which never change: of many
	// thousands few are others in the next one.
	known   map[*survey.Lock]survey.Summary
	circles []survey.Deadlock
	stuck   map[string]bool  // paths in circles
	before  *survey.Snapshot // that was looked through for deadlocks last
	judged  *survey.Snapshot // that was looked through by itself
	failed  string           // why nothing changes any more

	reverse  bool
	filter   string
	typing   bool   // the filter
	selected string // path
	offset   int    // of the list
	lock     string // whose chain is shown; empty for the list
	entry    string // the znode that is selected in it
	scroll   int    // of the chain
	help     bool
	paused   bool
}

// Look takes a snapshot, and the state of the connection.
func (m *Model) Look(snap *survey.Snapshot, status survey.Status, now time.Time) {
	m.status, m.now = status, now
	if m.paused || snap == nil {
		return
	}
	if m.snap == nil || m.snap.Version != snap.Version {
		m.snap = snap
		m.arrange()
	}
	m.judge()
}

// How long nothing must have changed for what is known to be of one moment: where
// the servers tell of changes, and where they are asked now and then.
const (
	quietLive  = time.Second
	quietAsked = 30 * time.Second
)

// apart is the time between two looks for deadlocks: of many thousands of entries one
// takes so long that it is not to be done at every change.
func (m *Model) apart() time.Duration {
	const many = 5000 // a second for each so many
	n := 0
	for _, l := range m.snap.Locks {
		n += len(l.Entries)
	}
	return time.Second * time.Duration(1+n/many)
}

// judge looks for deadlocks: in what has not changed for some time, or in what two
// snapshots have that are apart, as locks are read one after another.
func (m *Model) judge() {
	quiet := quietAsked
	if m.status.Live {
		quiet = quietLive
	}
	switch {
	case m.judged == m.snap:
		return
	case m.status.Behind == 0 && m.now.Sub(m.snap.At) >= quiet:
		m.circles = survey.Deadlocks(m.snap.Locks)
		m.before, m.judged = m.snap, m.snap
	case m.before == nil:
		m.before = m.snap
	case m.snap.At.Sub(m.before.At) >= m.apart():
		m.circles = survey.Deadlocks(survey.Steady(m.before.Locks, m.snap.Locks))
		m.before = m.snap
	}
	m.stuck = map[string]bool{}
	for _, d := range m.circles {
		for _, link := range d.Circle {
			m.stuck[link.Waits.Path] = true
		}
	}
}

// Resize takes the size of the screen.
func (m *Model) Resize(width, height int) { m.width, m.height = max(20, width), max(6, height) }

// Fail takes the reason why nothing will change any more.
func (m *Model) Fail(err error) { m.failed = err.Error() }

// arrange filters and sorts the rows, and keeps the selection.
func (m *Model) arrange() {
	m.rows = m.rows[:0]
	if m.snap == nil {
		return
	}
	want := strings.ToLower(m.filter)
	known := m.known
	m.known = make(map[*survey.Lock]survey.Summary, len(m.snap.Locks))
	for _, l := range m.snap.Locks {
		s, ok := known[l]
		if !ok {
			s = l.Summary()
		}
		m.known[l] = s
		if want == "" || strings.Contains(strings.ToLower(s.Path+"\n"+s.Who+"\n"+s.Next+"\n"+s.Command), want) {
			m.rows = append(m.rows, s)
		}
	}
	slices.SortStableFunc(m.rows, m.compare)
}

// compare orders rows: by path from a on, by all else the most first.
func (m *Model) compare(a, b survey.Summary) int {
	n := 0
	switch m.Sort {
	case byHeld:
		n = early(since(a), since(b))
	case byQueue:
		n = cmp.Compare(b.Waiting, a.Waiting)
	case byOldest:
		n = early(a.Oldest, b.Oldest)
	}
	if n = cmp.Or(n, strings.Compare(a.Path, b.Path)); m.reverse {
		return -n
	}
	return n
}

// early orders times, those that are not known last.
func early(a, b time.Time) int {
	if a.IsZero() != b.IsZero() {
		if a.IsZero() {
			return 1
		}
		return -1
	}
	return a.Compare(b)
}

// since is since when a lock is held, as well as is known.
func since(s survey.Summary) time.Time {
	if !s.Granted.IsZero() {
		return s.Granted
	}
	return s.Since
}

// place is where the selected lock is in the list: 0 if it is gone.
func (m *Model) place() int {
	return max(0, slices.IndexFunc(m.rows, func(s survey.Summary) bool { return s.Path == m.selected }))
}

// current is the lock whose chain is shown, nil if nobody holds it or waits.
func (m *Model) current() *survey.Lock {
	if m.snap == nil {
		return nil
	}
	return m.snap.Lock(m.lock)
}

// key does what a key means.
func (m *Model) key(k screen.Key) action {
	switch {
	case k == screen.Interrupt:
		return quit
	case k == screen.Suspend:
		return suspend
	case k == screen.Redraw:
		return redraw
	case m.typing:
		m.typed(k)
		return stay
	case m.help:
		m.help = false
		return stay
	}
	switch k {
	case 'q':
		return quit
	case '?':
		m.help = true
	case ' ':
		m.paused = !m.paused
	case screen.Escape, screen.Left, screen.Backspace:
		m.back()
	case 'h':
		m.back()
	case screen.Enter, screen.Right, 'l':
		m.open()
	case '/':
		m.typing, m.lock = true, ""
	default:
		m.move(k)
	}
	return stay
}

// typed adds a key to the filter.
func (m *Model) typed(k screen.Key) {
	switch {
	case k == screen.Enter:
		m.typing = false
	case k == screen.Escape:
		m.typing, m.filter = false, ""
	case k == screen.Backspace:
		if r := []rune(m.filter); len(r) > 0 {
			m.filter = string(r[:len(r)-1])
		}
	case k >= ' ' && unicode.IsPrint(rune(k)) && len(m.filter) < 200:
		m.filter += string(rune(k))
	}
	m.arrange()
}

// back leaves the chain, or else the filter.
func (m *Model) back() {
	if m.lock == "" {
		m.filter = ""
		m.arrange()
	}
	m.lock = ""
}

// open shows the selected lock's chain.
func (m *Model) open() {
	if m.lock == "" && len(m.rows) > 0 {
		m.lock, m.entry, m.scroll = m.rows[m.place()].Path, "", 0
		m.selected = m.lock
	}
}

// move moves the selection, or changes the order.
func (m *Model) move(k screen.Key) {
	page := max(1, m.height-5)
	steps := map[screen.Key]int{
		screen.Up: -1, 'k': -1, screen.Down: 1, 'j': 1, screen.PageUp: -page, screen.PageDown: page,
		screen.Home: -1 << 30, 'g': -1 << 30, screen.End: 1 << 30, 'G': 1 << 30,
	}
	if n, ok := steps[k]; ok {
		m.step(n)
		return
	}
	switch k {
	case 's':
		all := Orders()
		m.Sort = all[(slices.Index(all, cmp.Or(m.Sort, byPath))+1)%len(all)]
	case 'r':
		m.reverse = !m.reverse
	default:
		return
	}
	m.arrange()
}

// step moves the selection by n places.
func (m *Model) step(n int) {
	if m.lock == "" {
		if len(m.rows) > 0 {
			m.selected = m.rows[clamp(m.place()+n, len(m.rows))].Path
		}
		return
	}
	if l := m.current(); l != nil && len(l.Entries) > 0 {
		at := max(0, slices.IndexFunc(l.Entries, func(e survey.Entry) bool { return e.Node == m.entry }))
		m.entry = l.Entries[clamp(at+n, len(l.Entries))].Node
	}
}

// clamp keeps a place within n ones.
func clamp(at, n int) int { return max(0, min(at, n-1)) }
