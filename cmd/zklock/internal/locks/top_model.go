package locks

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/zklock/zklock/inspect"
)

// An action is what the loop must do after a key.
type action int

const (
	stay action = iota
	quit
	suspend
	redraw
)

// The names of the list's orders.
const (
	byPath   = "path"
	byHeld   = "held"
	byQueue  = "queue"
	byOldest = "wait"
)

// Orders returns the names of the list's orders; the first is the default.
func Orders() []string { return []string{byPath, byHeld, byQueue, byOldest} }

// A Model holds what top shows. It is not safe for concurrent use. The zero Model shows
// an empty list.
type Model struct {
	// Sort is one of [Orders]; empty means by path.
	Sort string
	// ASCII draws without line-drawing characters.
	ASCII bool
	// Strip is a prefix that is removed from shown paths.
	Strip string
	// History returns the history of a lock; nil shows none.
	History func(path string) inspect.History

	width, height int
	now           time.Time
	snap          *inspect.Snapshot
	status        inspect.Status
	rows          []inspect.Summary // shown rows, in order
	// known caches the summaries of the snapshot's locks. A Lock never changes, and
	// most are the same in the next snapshot.
	known    map[*inspect.Lock]inspect.Summary
	circles  []inspect.Deadlock
	stuck    map[string]bool   // paths of locks in deadlocks
	before   *inspect.Snapshot // earlier snapshot to compare with for deadlocks
	searched *inspect.Snapshot // last snapshot that was checked by itself
	failed   string            // why updates stopped

	reverse  bool
	filter   string
	typing   bool   // the filter is being typed
	selected string // path
	offset   int    // first shown row of the list
	lock     string // path of the lock whose chain is shown; empty shows the list
	entry    string // path of the znode selected in the chain
	scroll   int    // first shown row of the chain
	help     bool
	paused   bool
}

// Update updates the model with a snapshot and the watcher's status. A paused model keeps
// its snapshot.
func (m *Model) Update(snap *inspect.Snapshot, status inspect.Status, now time.Time) {
	m.status, m.now = status, now
	if m.paused || snap == nil {
		return
	}
	if m.snap == nil || m.snap.Version != snap.Version {
		m.snap = snap
		m.arrange()
	}
	m.findDeadlocks()
}

// A snapshot that is at least this old and unchanged counts as consistent. quietLive is
// for servers that report changes, quietAsked for polled servers.
const (
	quietLive  = time.Second
	quietAsked = 30 * time.Second
)

// apart returns the minimum time between two searches for deadlocks. It grows with the
// number of entries, because a search of many thousands is slow.
func (m *Model) apart() time.Duration {
	const many = 5000 // one more second for each so many entries
	n := 0
	for _, l := range m.snap.Locks {
		n += len(l.Entries)
	}
	return time.Second * time.Duration(1+n/many)
}

// findDeadlocks searches for deadlocks. Locks are read one after another, so it searches only a
// snapshot that has not changed for some time, or the locks that are equal in two
// snapshots taken some time apart.
func (m *Model) findDeadlocks() {
	quiet := quietAsked
	if m.status.Watching {
		quiet = quietLive
	}
	switch {
	case m.searched == m.snap:
		return
	case m.status.Pending == 0 && m.now.Sub(m.snap.At) >= quiet:
		m.circles = inspect.Deadlocks(m.snap.Locks)
		m.before, m.searched = m.snap, m.snap
	case m.before == nil:
		m.before = m.snap
	case m.snap.At.Sub(m.before.At) >= m.apart():
		m.circles = inspect.Deadlocks(inspect.Unchanged(m.before.Locks, m.snap.Locks))
		m.before = m.snap
	}
	m.stuck = map[string]bool{}
	for _, d := range m.circles {
		for _, link := range d.Cycle {
			m.stuck[link.Waits.Path] = true
		}
	}
}

// Resize sets the size of the screen.
func (m *Model) Resize(width, height int) { m.width, m.height = max(20, width), max(6, height) }

// Fail sets the error that stopped the updates.
func (m *Model) Fail(err error) { m.failed = err.Error() }

// arrange filters and sorts the rows. The selection stays, because it is a path.
func (m *Model) arrange() {
	m.rows = m.rows[:0]
	if m.snap == nil {
		return
	}
	want := strings.ToLower(m.filter)
	known := m.known
	m.known = make(map[*inspect.Lock]inspect.Summary, len(m.snap.Locks))
	for _, l := range m.snap.Locks {
		s, ok := known[l]
		if !ok {
			s = l.Summary()
		}
		m.known[l] = s
		if want == "" || strings.Contains(strings.ToLower(s.Path+"\n"+s.OwnerName+"\n"+s.Next+"\n"+s.Command), want) {
			m.rows = append(m.rows, s)
		}
	}
	slices.SortStableFunc(m.rows, m.compare)
}

// compare orders rows: paths ascending, everything else with the largest first.
func (m *Model) compare(a, b inspect.Summary) int {
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

// early orders times ascending, with unknown times last.
func early(a, b time.Time) int {
	if a.IsZero() != b.IsZero() {
		if a.IsZero() {
			return 1
		}
		return -1
	}
	return a.Compare(b)
}

// since returns when the lock was granted, or its entry's time if that is unknown.
func since(s inspect.Summary) time.Time {
	if !s.Granted.IsZero() {
		return s.Granted
	}
	return s.Since
}

// place returns the index of the selected lock, or 0 if it is gone.
func (m *Model) place() int {
	return max(0, slices.IndexFunc(m.rows, func(s inspect.Summary) bool { return s.Path == m.selected }))
}

// current returns the lock whose chain is shown, or nil if it has no entries.
func (m *Model) current() *inspect.Lock {
	if m.snap == nil {
		return nil
	}
	return m.snap.Lock(m.lock)
}

// key handles a key and returns what the loop must do.
func (m *Model) key(k Key) action {
	switch {
	case k == Interrupt:
		return quit
	case k == Suspend:
		return suspend
	case k == Redraw:
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
	case Escape, Left, Backspace, 'h':
		m.back()
	case Enter, Right, 'l':
		m.open()
	case '/':
		m.typing, m.lock = true, ""
	default:
		m.move(k)
	}
	return stay
}

// typed handles a key while the user types the filter.
func (m *Model) typed(k Key) {
	switch {
	case k == Enter:
		m.typing = false
	case k == Escape:
		m.typing, m.filter = false, ""
	case k == Backspace:
		if r := []rune(m.filter); len(r) > 0 {
			m.filter = string(r[:len(r)-1])
		}
	case k >= ' ' && unicode.IsPrint(rune(k)) && len(m.filter) < 200:
		m.filter += string(rune(k))
	}
	m.arrange()
}

// back leaves the chain, or clears the filter in the list.
func (m *Model) back() {
	if m.lock == "" {
		m.filter = ""
		m.arrange()
	}
	m.lock = ""
}

// open shows the chain of the selected lock.
func (m *Model) open() {
	if m.lock == "" && len(m.rows) > 0 {
		m.lock, m.entry, m.scroll = m.rows[m.place()].Path, "", 0
		m.selected = m.lock
	}
}

// move moves the selection, or changes the order.
func (m *Model) move(k Key) {
	page := max(1, m.height-5)
	steps := map[Key]int{
		Up: -1, 'k': -1, Down: 1, 'j': 1, PageUp: -page, PageDown: page,
		Home: -1 << 30, 'g': -1 << 30, End: 1 << 30, 'G': 1 << 30,
	}
	if n, ok := steps[k]; ok {
		m.step(n)
		return
	}
	switch k {
	case 's':
		all := Orders()
		m.Sort = all[(slices.Index(all, m.order())+1)%len(all)]
	case 'r':
		m.reverse = !m.reverse
	default:
		return
	}
	m.arrange()
}

// step moves the selection by n rows.
func (m *Model) step(n int) {
	if m.lock == "" {
		if len(m.rows) > 0 {
			m.selected = m.rows[clamp(m.place()+n, len(m.rows))].Path
		}
		return
	}
	if l := m.current(); l != nil && len(l.Entries) > 0 {
		at := max(0, slices.IndexFunc(l.Entries, func(e inspect.Entry) bool { return e.Node == m.entry }))
		m.entry = l.Entries[clamp(at+n, len(l.Entries))].Node
	}
}

// clamp returns the index nearest to at within n rows.
func clamp(at, n int) int { return max(0, min(at, n-1)) }
