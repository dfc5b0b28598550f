package locks

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
	"github.com/zklock/zklock/cmd/zklock/internal/cli"
	"github.com/zklock/zklock/inspect"
)

// now is the time of these tests.
var now = time.Date(2026, 3, 4, 12, 0, 0, 0, time.Local)

// topEntry returns an entry with number n that is ago old.
func topEntry(path string, n int, mode zklock.Mode, turn int, ago time.Duration, owner zklock.Owner) inspect.Entry {
	name := fmt.Sprintf("_c_0f8fad5b-d9cb-469f-a165-70867728950e-lock-%010d", n)
	e := inspect.Entry{Position: turn, Entry: zklock.Entry{
		Path: path, Name: name, Node: path + "/" + name, Mode: mode, Holder: turn == 0, Token: int64(1000 + n),
		Session: int64(16 + n), Since: now.Add(-ago), Owner: owner,
	}}
	e.Recipe = inspect.RecipeOf(e.Entry)
	return e
}

// host returns an owner.
func host(name string, command string) zklock.Owner {
	return zklock.Owner{Host: name, PID: 42, User: "root", Command: command}
}

// snapshot returns locks of several kinds.
func snapshot() *inspect.Snapshot {
	nightly := &inspect.Lock{Path: "/zklock/nightly", Kind: inspect.KindQueue, Layouts: []string{"zklock mutex"}, Entries: []inspect.Entry{
		topEntry("/zklock/nightly", 1, zklock.Exclusive, 0, 2*time.Hour, host("web1", "backup")),
		topEntry("/zklock/nightly", 2, zklock.Exclusive, 1, time.Hour, host("web2", "backup")),
		topEntry("/zklock/nightly", 3, zklock.Shared, 2, time.Minute, host("db1", "report")),
		topEntry("/zklock/nightly", 4, zklock.Shared, 3, 30*time.Second, host("db2", "report")),
		topEntry("/zklock/nightly", 5, zklock.Exclusive, 4, time.Second, host("db3", "vacuum")),
	}, Warnings: []string{"something is odd"}}
	nightly.Entries[0].Granted = now.Add(-90 * time.Second)
	reports := &inspect.Lock{Path: "/zklock/reports", Kind: inspect.KindQueue, Layouts: []string{"Curator reader"}, Entries: []inspect.Entry{
		topEntry("/zklock/reports", 6, zklock.Shared, 0, 5*time.Second, host("r1", "")),
		topEntry("/zklock/reports", 7, zklock.Shared, 0, 4*time.Second, host("r2", "")),
	}}
	pool := &inspect.Lock{Path: "/zklock/pool", Kind: inspect.KindSemaphore, Permits: 3, Layouts: []string{"zklock permit"}, Entries: []inspect.Entry{
		topEntry("/zklock/pool", 8, zklock.Permit, 0, 3*time.Second, host("w", "")),
	}}
	evil := &inspect.Lock{Path: "/apps/\u202eevil", Kind: inspect.KindNode, Entries: []inspect.Entry{
		topEntry("/apps/\u202eevil", 9, zklock.Exclusive, 0, time.Hour, zklock.Owner{}),
	}}
	evil.Entries[0].Data = strings.Repeat("世界", 40)
	orphan := &inspect.Lock{Path: "/zklock/orphan", Kind: inspect.KindQueue, Entries: []inspect.Entry{
		topEntry("/zklock/orphan", 10, zklock.Exclusive, 1, time.Minute, host("late", "")),
	}}
	return &inspect.Snapshot{Version: 1, At: now, Locks: []*inspect.Lock{evil, nightly, orphan, pool, reports}}
}

// complete returns the status of a watcher that is up to date.
func complete() inspect.Status {
	return inspect.Status{Prefix: "/", Connected: true, LastContact: now, Listed: true, Complete: true, Watching: true, MaxReadRate: 500}
}

// model returns a model with the snapshot in 80x24.
func model() *Model {
	m := &Model{Strip: "/zklock/"}
	m.Resize(80, 24)
	m.Update(snapshot(), complete(), now)
	return m
}

// text returns the whole screen.
func text(m *Model) string {
	var b strings.Builder
	for _, l := range m.Lines() {
		b.WriteString(strings.TrimRight(l.String(), " ") + "\n")
	}
	return b.String()
}

// press presses a key for each word, which is a character or the name of a key.
func press(m *Model, words string) (last action) {
	names := map[string]Key{
		"up": Up, "down": Down, "enter": Enter, "esc": Escape, "end": End, "home": Home,
		"pgdown": PageDown, "pgup": PageUp, "space": ' ', "back": Backspace, "^C": Interrupt, "^Z": Suspend, "^L": Redraw,
	}
	for word := range strings.FieldsSeq(words) {
		k, named := names[word]
		if !named {
			k = Key([]rune(word)[0])
		}
		last = m.key(k)
	}
	return last
}

// TestScreens compares whole screens with reviewed files in testdata. With UPDATE=1 in the
// environment, it writes them.
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
			m.Update(&inspect.Snapshot{Version: 2, At: now}, complete(), now)
		}},
		{"chain_unknown", func(m *Model) {
			press(m, "down enter")
			m.Update(&inspect.Snapshot{Version: 2, At: now, Status: inspect.Status{Prefix: "/other"}}, complete(), now)
		}},
		{"semaphore", func(m *Model) {
			m.History = func(string) inspect.History {
				return inspect.History{Since: now.Add(-time.Hour), Grants: 7, Losses: 1, Wait: inspect.DurationStats{Count: 7, P50: 1.5, P99: 60}, Hold: inspect.DurationStats{Count: 6, P50: 10, P99: 3600}}
			}
			press(m, "down down down enter")
		}},
		{"nothing", func(m *Model) { m.Update(&inspect.Snapshot{Version: 2, At: now}, complete(), now) }},
		{"help", func(m *Model) { press(m, "?") }},
		{"disconnected", func(m *Model) {
			s := complete()
			s.Connected, s.LastContact = false, now.Add(-5*time.Second)
			m.Update(snapshot(), s, now)
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

// TestCellLooksLikeOneCell checks that what a client chose, such as its host, contains no space
// that is as wide as that between columns.
func TestCellLooksLikeOneCell(t *testing.T) {
	m := model()
	next := snapshot()
	next.Version, next.Locks = 2, next.Locks[1:2]
	next.Locks[0].Entries[0].Owner = host("a  b", "c  d")
	m.Update(next, complete(), now)
	list := text(m)
	press(m, "enter")
	for screen, cells := range map[string][]string{
		list: {`nightly  `, `  a \x20b:42  `}, text(m): {`  a \x20b:42  `, `  c \x20d  `, `exclusive  `},
	} {
		for _, cell := range cells {
			if !strings.Contains(screen, cell) {
				t.Errorf("no %q in\n%s", cell, screen)
			}
		}
	}
}

// TestStatusLine checks that the second line says how current the data are.
func TestStatusLine(t *testing.T) {
	tests := []struct {
		edit func(s *inspect.Status)
		want string
	}{
		{func(*inspect.Status) {}, ""},
		{func(s *inspect.Status) { s.Connected, s.LastContact = false, time.Time{} }, "connecting"},
		{func(s *inspect.Status) { s.Listed = false }, "looking for locks"},
		{func(s *inspect.Status) { s.Complete, s.Reason = false, "too much" }, "not all locks: too much"},
		{func(s *inspect.Status) { s.Pending = 3 }, "3 locks changed but not read yet: the limit is 500 reads per second"},
		{func(s *inspect.Status) { s.Watching = false }, "the servers do not report changes: zklock polls them"},
	}
	for _, tt := range tests {
		m := model()
		s := complete()
		tt.edit(&s)
		m.Update(snapshot(), s, now)
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

// TestPause checks that a paused screen does not change, and later shows the current data.
func TestPause(t *testing.T) {
	m := model()
	press(m, "space")
	m.Update(&inspect.Snapshot{Version: 2, At: now}, complete(), now)
	if got := text(m); !strings.Contains(got, "paused") || !strings.Contains(got, "nightly") {
		t.Errorf("paused:\n%s", got)
	}
	press(m, "space")
	m.Update(&inspect.Snapshot{Version: 2, At: now}, complete(), now)
	if got := text(m); strings.Contains(got, "nightly") {
		t.Errorf("continued:\n%s", got)
	}
}

// TestSelectionStaysWithLock checks that other locks do not move the selection.
func TestSelectionStaysWithLock(t *testing.T) {
	m := model()
	press(m, "down") // nightly
	next := snapshot()
	next.Version, next.Locks = 2, next.Locks[1:]
	m.Update(next, complete(), now)
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
	if len(m.rows) != 1 || m.rows[0].Path != "/zklock/reports" { // the case is ignored
		t.Errorf("%d rows", len(m.rows))
	}
	press(m, "esc")
	if len(m.rows) != 5 {
		t.Errorf("%d rows without a filter", len(m.rows))
	}
	press(m, "/ z z esc")
	if len(m.rows) != 5 {
		t.Errorf("%d rows after a canceled filter", len(m.rows))
	}
}

// TestSortOrders checks each order, and that r reverses it.
func TestSortOrders(t *testing.T) {
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
			t.Errorf("%s reversed: %s is last", tt.order, m.rows[4].Path)
		}
		press(m, "r s")
	}
}

// TestConfirmedDeadlockIsShown checks that a deadlock is shown if two snapshots confirm it, and
// that its locks are marked.
func TestConfirmedDeadlockIsShown(t *testing.T) {
	a, b := host("a", ""), host("b", "")
	lock := func(path string, holder, waiter int) *inspect.Lock {
		l := &inspect.Lock{Path: path, Kind: inspect.KindQueue, Entries: []inspect.Entry{
			topEntry(path, 1, zklock.Exclusive, 0, time.Minute, a), topEntry(path, 2, zklock.Exclusive, 1, time.Minute, b),
		}}
		l.Entries[0].Session, l.Entries[1].Session = int64(holder), int64(waiter)
		return l
	}
	snap := &inspect.Snapshot{Version: 1, At: now, Locks: []*inspect.Lock{lock("/zklock/x", 1, 2), lock("/zklock/y", 2, 1)}}
	m := &Model{Strip: "/zklock/"}
	m.Resize(80, 24)
	m.Update(snap, complete(), now)
	if got := m.Lines()[1].String(); got != "" {
		t.Errorf("at once: %q", got)
	}
	// The snapshot does not change, which is usual for deadlocks.
	quiet := &Model{Strip: "/zklock/"}
	quiet.Resize(80, 24)
	quiet.Update(snap, complete(), now)
	quiet.Update(snap, complete(), now.Add(2*time.Second))
	if got := quiet.Lines()[1].String(); !strings.HasPrefix(got, "DEADLOCK: ") {
		t.Errorf("after two seconds: %q", got)
	}
	asked := complete()
	asked.Watching = false
	quiet = &Model{}
	quiet.Resize(80, 24)
	for _, ago := range []time.Duration{0, 2 * time.Second, 40 * time.Second} {
		quiet.Update(snap, asked, now.Add(ago))
		if got := quiet.Lines()[1].String(); strings.HasPrefix(got, "DEADLOCK: ") != (ago > 30*time.Second) {
			t.Errorf("with polled servers, after %v: %q", ago, got)
		}
	}
	later := *snap
	later.Version, later.At = 2, now.Add(2*time.Second)
	m.Update(&later, complete(), later.At)
	if got := m.Lines()[1].String(); got != "DEADLOCK: b:42 waits for y, b:42 waits for x" {
		t.Errorf("%q", got)
	}
	if got := m.Lines()[above+1].String(); !strings.HasPrefix(got, "! y") {
		t.Errorf("%q", got)
	}
	last := inspect.Snapshot{Version: 3, At: now.Add(4 * time.Second), Locks: snap.Locks[:1]}
	m.Update(&last, complete(), last.At)
	if got := m.Lines()[1].String(); got != "" {
		t.Errorf("without the deadlock: %q", got)
	}
}

// TestAnyKeysAtAnySizeFitScreen checks that the number of lines is that of the screen, and that
// no line is too wide, after random keys and at random sizes.
func TestAnyKeysAtAnySizeFitScreen(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	keys := []Key{Up, Down, Enter, Escape, PageUp, PageDown, Home, End,
		Backspace, Delete, Unknown, 'q', 's', 'r', '/', '?', ' ', 'x', '世', 'w', 'l', 'h', 'G'}
	m := model()
	for i := range 20000 {
		switch rnd.IntN(10) {
		case 0:
			m.Resize(rnd.IntN(140), rnd.IntN(40))
		case 1:
			snap := snapshot()
			snap.Version, snap.At = uint64(i+2), now.Add(time.Duration(i)*time.Second)
			rnd.Shuffle(len(snap.Locks), func(i, j int) {})
			snap.Locks = snap.Locks[:rnd.IntN(len(snap.Locks)+1)]
			m.ASCII = rnd.IntN(2) == 0
			m.Update(snap, complete(), snap.At)
		default:
			m.key(keys[rnd.IntN(len(keys))])
		}
		lines := m.Lines()
		if len(lines) != m.height {
			t.Fatalf("step %d: %d lines of %d", i, len(lines), m.height)
		}
		for _, l := range lines[above:] {
			if n := cli.Columns(l.String()); m.width >= 60 && !m.help && n > m.width {
				t.Fatalf("step %d: %q has %d columns of %d", i, l, n, m.width)
			}
		}
	}
}

// TestManyLocksAreDrawnAtOnce checks a list of many locks, and a long queue.
func TestManyLocksAreDrawnAtOnce(t *testing.T) {
	snap := &inspect.Snapshot{Version: 1, At: now}
	for i := range 10_000 {
		path := fmt.Sprintf("/zklock/l%05d", i)
		snap.Locks = append(snap.Locks, &inspect.Lock{Path: path, Kind: inspect.KindQueue, Entries: []inspect.Entry{topEntry(path, i, zklock.Exclusive, 0, time.Minute, host("h", ""))}})
	}
	for i := range 1000 {
		snap.Locks[0].Entries = append(snap.Locks[0].Entries, topEntry("/zklock/l00000", 10_000+i, zklock.Exclusive, i+1, time.Minute, host("h", "")))
	}
	m := &Model{}
	m.Resize(80, 24)
	began := time.Now()
	m.Update(snap, complete(), now)
	for range 10 {
		_ = m.Lines()
	}
	press(m, "enter end")
	if got := text(m); !strings.Contains(got, "■ 1000 ") {
		t.Errorf("the end of the queue:\n%s", got)
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("took %v", took)
	}
}
