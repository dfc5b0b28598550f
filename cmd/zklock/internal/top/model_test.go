package top

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/cmd/zklock/internal/screen"
	"github.com/zklock/zklock/internal/survey"
)

// now is when all of these tests take place.
var now = time.Date(2026, 3, 4, 12, 0, 0, 0, time.Local)

// entry makes an entry: n its number, ago the time since it came.
func entry(path string, n int, mode zklock.Mode, turn int, ago time.Duration, owner zklock.Owner) survey.Entry {
	name := fmt.Sprintf("_c_0f8fad5b-d9cb-469f-a165-70867728950e-lock-%010d", n)
	e := survey.Entry{Turn: turn, Entry: zklock.Entry{
		Path: path, Name: name, Node: path + "/" + name, Mode: mode, Holder: turn == 0, Token: int64(1000 + n),
		Session: int64(16 + n), Since: now.Add(-ago), Owner: owner,
	}}
	e.Recipe = survey.RecipeOf(e.Entry)
	return e
}

// host is an owner.
func host(name string, command string) zklock.Owner {
	return zklock.Owner{Host: name, PID: 42, User: "root", Command: command}
}

// scene are locks of several kinds.
func scene() *survey.Snapshot {
	nightly := &survey.Lock{Path: "/zklock/nightly", Kind: survey.Queue, Layouts: []string{"zklock mutex"}, Entries: []survey.Entry{
		entry("/zklock/nightly", 1, zklock.Exclusive, 0, 2*time.Hour, host("web1", "backup")),
		entry("/zklock/nightly", 2, zklock.Exclusive, 1, time.Hour, host("web2", "backup")),
		entry("/zklock/nightly", 3, zklock.Shared, 2, time.Minute, host("db1", "report")),
		entry("/zklock/nightly", 4, zklock.Shared, 3, 30*time.Second, host("db2", "report")),
		entry("/zklock/nightly", 5, zklock.Exclusive, 4, time.Second, host("db3", "vacuum")),
	}, Warnings: []string{"something is odd"}}
	nightly.Entries[0].Granted = now.Add(-90 * time.Second)
	reports := &survey.Lock{Path: "/zklock/reports", Kind: survey.Queue, Layouts: []string{"Curator reader"}, Entries: []survey.Entry{
		entry("/zklock/reports", 6, zklock.Shared, 0, 5*time.Second, host("r1", "")),
		entry("/zklock/reports", 7, zklock.Shared, 0, 4*time.Second, host("r2", "")),
	}}
	pool := &survey.Lock{Path: "/zklock/pool", Kind: survey.Semaphore, Permits: 3, Layouts: []string{"zklock permit"}, Entries: []survey.Entry{
		entry("/zklock/pool", 8, zklock.Permit, 0, 3*time.Second, host("w", "")),
	}}
	evil := &survey.Lock{Path: "/apps/\u202eevil", Kind: survey.Node, Entries: []survey.Entry{
		entry("/apps/\u202eevil", 9, zklock.Exclusive, 0, time.Hour, zklock.Owner{}),
	}}
	evil.Entries[0].Data = strings.Repeat("世界", 40)
	orphan := &survey.Lock{Path: "/zklock/orphan", Kind: survey.Queue, Entries: []survey.Entry{
		entry("/zklock/orphan", 10, zklock.Exclusive, 1, time.Minute, host("late", "")),
	}}
	return &survey.Snapshot{Version: 1, At: now, Locks: []*survey.Lock{evil, nightly, orphan, pool, reports}}
}

// fine is the status of a survey that knows everything.
func fine() survey.Status {
	return survey.Status{Prefix: "/", Connected: true, Heard: now, Walked: true, Complete: true, Live: true, ReadRate: 500}
}

// model shows the scene in 80x24.
func model() *Model {
	m := &Model{Strip: "/zklock/"}
	m.Resize(80, 24)
	m.Look(scene(), fine(), now)
	return m
}

// text is the whole screen.
func text(m *Model) string {
	var b strings.Builder
	for _, l := range m.Lines() {
		b.WriteString(strings.TrimRight(l.String(), " ") + "\n")
	}
	return b.String()
}

// press presses keys, one for each word: a character, or a name.
func press(m *Model, words string) (last action) {
	names := map[string]screen.Key{
		"up": screen.Up, "down": screen.Down, "enter": screen.Enter, "esc": screen.Escape, "end": screen.End, "home": screen.Home,
		"pgdown": screen.PageDown, "pgup": screen.PageUp, "space": ' ', "back": screen.Backspace, "^C": screen.Interrupt, "^Z": screen.Suspend, "^L": screen.Redraw,
	}
	for word := range strings.FieldsSeq(words) {
		k, named := names[word]
		if !named {
			k = screen.Key([]rune(word)[0])
		}
		last = m.key(k)
	}
	return last
}

// TestScreens compares whole screens with files in testdata, which were looked at.
// With UPDATE=1 in the environment it writes them.
func TestScreens(t *testing.T) {
	tests := []struct {
		name string
		show func(m *Model)
	}{
		{"list", func(*Model) {}},
		{"list_ascii", func(m *Model) { m.ASCII = true }},
		{"list_narrow", func(m *Model) { m.Resize(50, 12) }},
		{"list_wide", func(m *Model) { m.Resize(120, 12) }},
		{"sorted", func(m *Model) { press(m, "s s down") }},
		{"filtered", func(m *Model) { press(m, "/ w e b") }},
		{"filtered_none", func(m *Model) { press(m, "/ x y z enter") }},
		{"chain", func(m *Model) { press(m, "down enter down down") }},
		{"chain_ascii", func(m *Model) { m.ASCII = true; press(m, "down enter") }},
		{"chain_small", func(m *Model) { m.Resize(60, 13); press(m, "down enter end") }},
		{"chain_gone", func(m *Model) {
			press(m, "down enter")
			m.Look(&survey.Snapshot{Version: 2, At: now}, fine(), now)
		}},
		{"semaphore", func(m *Model) {
			m.History = func(string) survey.History {
				return survey.History{Since: now.Add(-time.Hour), Grants: 7, Losses: 1, Wait: survey.Times{Count: 7, P50: 1.5, P99: 60}, Hold: survey.Times{Count: 6, P50: 10, P99: 3600}}
			}
			press(m, "down down down enter")
		}},
		{"nothing", func(m *Model) { m.Look(&survey.Snapshot{Version: 2, At: now}, fine(), now) }},
		{"help", func(m *Model) { press(m, "?") }},
		{"disconnected", func(m *Model) {
			s := fine()
			s.Connected, s.Heard = false, now.Add(-5*time.Second)
			m.Look(scene(), s, now)
		}},
	}
	for _, tt := range tests {
		m := model()
		tt.show(m)
		got := text(m)
		file := filepath.Join("testdata", tt.name+".txt")
		if os.Getenv("UPDATE") != "" {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil || got != string(want) {
			t.Errorf("%s: %v\n%s\nwant\n%s", tt.name, err, got, want)
		}
	}
}

// TestState: how well things are known is told in the second line.
func TestState(t *testing.T) {
	tests := []struct {
		edit func(s *survey.Status)
		want string
	}{
		{func(*survey.Status) {}, ""},
		{func(s *survey.Status) { s.Connected, s.Heard = false, time.Time{} }, "connecting"},
		{func(s *survey.Status) { s.Walked = false }, "looking for locks"},
		{func(s *survey.Status) { s.Complete, s.Why = false, "too much" }, "not all locks: too much"},
		{func(s *survey.Status) { s.Behind = 3 }, "3 locks changed and not read yet, to keep below 500 reads a second"},
		{func(s *survey.Status) { s.Live = false }, "the servers do not tell of changes: they are asked now and then"},
	}
	for _, tt := range tests {
		m := model()
		s := fine()
		tt.edit(&s)
		m.Look(scene(), s, now)
		if got := m.Lines()[1].String(); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
	m := model()
	m.Fail(errors.New("refused"))
	if got := m.Lines()[1].String(); got != "stopped: refused" {
		t.Errorf("%q", got)
	}
}

// TestPause: a paused screen stays as it was, and goes on with what is then.
func TestPause(t *testing.T) {
	m := model()
	press(m, "space")
	m.Look(&survey.Snapshot{Version: 2, At: now}, fine(), now)
	if got := text(m); !strings.Contains(got, "paused") || !strings.Contains(got, "nightly") {
		t.Errorf("paused:\n%s", got)
	}
	press(m, "space")
	m.Look(&survey.Snapshot{Version: 2, At: now}, fine(), now)
	if got := text(m); strings.Contains(got, "nightly") {
		t.Errorf("goes on:\n%s", got)
	}
}

// TestSelection stays with its lock while others come and go.
func TestSelection(t *testing.T) {
	m := model()
	press(m, "down") // nightly
	next := scene()
	next.Version, next.Locks = 2, next.Locks[1:]
	m.Look(next, fine(), now)
	if got := m.Lines()[above].String(); !strings.HasPrefix(got, ">  nightly") && !strings.HasPrefix(got, "> nightly") {
		t.Errorf("selected: %q", got)
	}
	press(m, "end")
	if got := m.Lines()[above+3].String(); !strings.HasPrefix(got, "> reports") {
		t.Errorf("at the end: %q", got)
	}
}

func TestActions(t *testing.T) {
	for words, want := range map[string]action{"q": quit, "^C": quit, "^Z": suspend, "^L": redraw, "x": stay, "/ q": stay, "/ ^C": quit, "? q": stay} {
		if got := press(model(), words); got != want {
			t.Errorf("%s: %d, want %d", words, got, want)
		}
	}
}

func TestFilter(t *testing.T) {
	m := model()
	press(m, "/ R E P x back enter")
	if len(m.rows) != 1 || m.rows[0].Path != "/zklock/reports" { // capitals don't matter
		t.Errorf("%d rows", len(m.rows))
	}
	press(m, "esc")
	if len(m.rows) != 5 {
		t.Errorf("%d rows without a filter", len(m.rows))
	}
	press(m, "/ z z esc")
	if len(m.rows) != 5 {
		t.Errorf("%d rows after a filter that was dropped", len(m.rows))
	}
}

// TestSorts: each order puts first what its name says, and r turns it around.
func TestSorts(t *testing.T) {
	m := model()
	for _, tt := range []struct{ order, first, last string }{
		{byPath, "/apps/\u202eevil", "/zklock/reports"},
		{byHeld, "/apps/\u202eevil", "/zklock/orphan"},
		{byQueue, "/zklock/nightly", "/zklock/reports"},
		{byOldest, "/zklock/nightly", "/zklock/reports"},
	} {
		if m.order() != tt.order || m.rows[0].Path != tt.first || m.rows[4].Path != tt.last {
			t.Errorf("%s (want %s): %s to %s", m.order(), tt.order, m.rows[0].Path, m.rows[4].Path)
		}
		press(m, "r")
		if m.rows[4].Path != tt.first {
			t.Errorf("%s the other way: %s is last", tt.order, m.rows[4].Path)
		}
		press(m, "r s")
	}
}

// TestDeadlock is told when it stood through two looks, and marks its locks.
func TestDeadlock(t *testing.T) {
	a, b := host("a", ""), host("b", "")
	lock := func(path string, holder, waiter int) *survey.Lock {
		l := &survey.Lock{Path: path, Kind: survey.Queue, Entries: []survey.Entry{
			entry(path, 1, zklock.Exclusive, 0, time.Minute, a), entry(path, 2, zklock.Exclusive, 1, time.Minute, b),
		}}
		l.Entries[0].Session, l.Entries[1].Session = int64(holder), int64(waiter)
		return l
	}
	snap := &survey.Snapshot{Version: 1, At: now, Locks: []*survey.Lock{lock("/zklock/x", 1, 2), lock("/zklock/y", 2, 1)}}
	m := &Model{Strip: "/zklock/"}
	m.Resize(80, 24)
	m.Look(snap, fine(), now)
	if got := m.Lines()[1].String(); got != "" {
		t.Errorf("at once: %q", got)
	}
	// Nothing changes for a while, as it is with deadlocks.
	quiet := &Model{Strip: "/zklock/"}
	quiet.Resize(80, 24)
	quiet.Look(snap, fine(), now)
	quiet.Look(snap, fine(), now.Add(2*time.Second))
	if got := quiet.Lines()[1].String(); !strings.HasPrefix(got, "DEADLOCK: ") {
		t.Errorf("after two seconds: %q", got)
	}
	asked := fine()
	asked.Live = false
	quiet = &Model{}
	quiet.Resize(80, 24)
	for _, ago := range []time.Duration{0, 2 * time.Second, 40 * time.Second} {
		quiet.Look(snap, asked, now.Add(ago))
		if got := quiet.Lines()[1].String(); strings.HasPrefix(got, "DEADLOCK: ") != (ago > 30*time.Second) {
			t.Errorf("where the servers are asked, after %v: %q", ago, got)
		}
	}
	later := *snap
	later.Version, later.At = 2, now.Add(2*time.Second)
	m.Look(&later, fine(), later.At)
	if got := m.Lines()[1].String(); got != "DEADLOCK: b:42 waits for y, b:42 waits for x" {
		t.Errorf("%q", got)
	}
	if got := m.Lines()[above+1].String(); !strings.HasPrefix(got, "! y") {
		t.Errorf("%q", got)
	}
	last := survey.Snapshot{Version: 3, At: now.Add(4 * time.Second), Locks: snap.Locks[:1]}
	m.Look(&last, fine(), last.At)
	if got := m.Lines()[1].String(); got != "" {
		t.Errorf("when it is broken: %q", got)
	}
}

// TestAnyKeysAnySize: nothing that is typed, at no size, breaks the screen: it has as
// many lines as there are rows, none wider than it is.
func TestAnyKeysAnySize(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	keys := []screen.Key{screen.Up, screen.Down, screen.Enter, screen.Escape, screen.PageUp, screen.PageDown, screen.Home, screen.End,
		screen.Backspace, screen.Delete, screen.Unknown, 'q', 's', 'r', '/', '?', ' ', 'x', '世', 'w', 'l', 'h', 'G'}
	m := model()
	for i := range 20000 {
		switch rnd.IntN(10) {
		case 0:
			m.Resize(rnd.IntN(140), rnd.IntN(40))
		case 1:
			snap := scene()
			snap.Version, snap.At = uint64(i+2), now.Add(time.Duration(i)*time.Second)
			rnd.Shuffle(len(snap.Locks), func(i, j int) {})
			snap.Locks = snap.Locks[:rnd.IntN(len(snap.Locks)+1)]
			m.ASCII = rnd.IntN(2) == 0
			m.Look(snap, fine(), snap.At)
		default:
			m.key(keys[rnd.IntN(len(keys))])
		}
		lines := m.Lines()
		if len(lines) != m.height {
			t.Fatalf("step %d: %d lines of %d", i, len(lines), m.height)
		}
		for _, l := range lines[above:] {
			if n := screen.Columns(l.String()); m.width >= 60 && !m.help && n > m.width {
				t.Fatalf("step %d: %q has %d columns of %d", i, l, n, m.width)
			}
		}
	}
}

// TestTenThousand: a screen of a list of many thousands is drawn at once, and so is
// one of a long queue.
func TestTenThousand(t *testing.T) {
	snap := &survey.Snapshot{Version: 1, At: now}
	for i := range 10_000 {
		path := fmt.Sprintf("/zklock/l%05d", i)
		snap.Locks = append(snap.Locks, &survey.Lock{Path: path, Kind: survey.Queue, Entries: []survey.Entry{entry(path, i, zklock.Exclusive, 0, time.Minute, host("h", ""))}})
	}
	for i := range 1000 {
		snap.Locks[0].Entries = append(snap.Locks[0].Entries, entry("/zklock/l00000", 10_000+i, zklock.Exclusive, i+1, time.Minute, host("h", "")))
	}
	m := &Model{}
	m.Resize(80, 24)
	began := time.Now()
	m.Look(snap, fine(), now)
	for range 10 {
		_ = m.Lines()
	}
	press(m, "enter end")
	if got := text(m); !strings.Contains(got, "1000th") {
		t.Errorf("the end of the queue:\n%s", got)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("took %v", took)
	}
}
