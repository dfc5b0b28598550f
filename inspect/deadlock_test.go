package inspect

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/zklock/zklock"
)

// place makes entries as Inspect returns them. Each word is a session's number,
// with r for a reader, p for a permit, and ! for one that holds: "1! 2 3r".
func place(path string, permits int, words ...string) *Lock {
	l := &Lock{Path: path, Kind: KindQueue, Permits: permits}
	for i, word := range words {
		e := Entry{Entry: zklock.Entry{Path: path, Name: fmt.Sprintf("x-lock-%010d", i), Mode: zklock.Exclusive, Token: int64(100 + 10*len(path) + i)}}
		_, _ = fmt.Sscan(word, &e.Session)
		e.Node = path + "/" + e.Name
		for _, mark := range word {
			switch mark {
			case '!':
				e.Holder = true
			case 'r':
				e.Mode = zklock.Shared
			case 's':
				e.Mode = zklock.Stray
			case 'p':
				e.Mode, l.Kind = zklock.Permit, KindSemaphore
			}
		}
		if e.Mode == zklock.Permit {
			e.Node = path + "/locks/" + e.Name
			if e.Holder {
				e.Node = path + "/leases/" + e.Name
			}
		}
		l.Entries = append(l.Entries, e)
	}
	return l
}

// TestKazooPermitsDoNotWaitForEachOther: two clients with permits of two semaphores are no
// deadlock, in whichever order they got them.
func TestKazooPermitsDoNotWaitForEachOther(t *testing.T) {
	permits := func(path string, sessions ...int64) *Lock {
		l := &Lock{Path: path, Kind: KindQueue, Permits: 3}
		for i, session := range sessions {
			name := fmt.Sprintf("%032x", i)
			l.Entries = append(l.Entries, Entry{Entry: zklock.Entry{Path: path, Node: path + "/" + name, Name: name, Mode: zklock.Stray, Session: session, Token: session}})
		}
		if !l.takeKazooPermits() {
			t.Fatal("not kazoo's semaphore")
		}
		return l
	}
	if found := Deadlocks([]*Lock{permits("/a", 1, 2), permits("/b", 2, 1)}); len(found) != 0 {
		t.Errorf("%+v", found)
	}
}

// TestReaderUnderItsOwnWriterDoesNotWait checks that a Curator client that holds the writer
// does not wait for the clients between its writer and its reader. A client of zklock does.
func TestReaderUnderItsOwnWriterDoesNotWait(t *testing.T) {
	for library, want := range map[string]int{libCurator: 0, libZklock: 1} {
		l := place("/a", 0, "1!", "2", "1r")
		for i := range l.Entries {
			kind := kindWriter
			if l.Entries[i].Mode == zklock.Shared {
				kind = kindReader
			}
			l.Entries[i].Recipe = Recipe{library, kind}
		}
		if found := Deadlocks([]*Lock{l}); len(found) != want {
			t.Errorf("%s: %+v, want %d", library, found, want)
		}
	}
}

func TestDeadlocks(t *testing.T) {
	tests := []struct {
		name  string
		locks []*Lock
		want  string
	}{
		{"nothing", nil, ""},
		{"one queue", []*Lock{place("/a", 0, "1!", "2", "3")}, ""},
		{"two locks in one order", []*Lock{place("/a", 0, "1!", "2"), place("/bb", 0, "1!")}, ""},
		{"two locks, each has one and wants the other", []*Lock{place("/a", 0, "1!", "2"), place("/bb", 0, "2!", "1")},
			"[1:/bb>2 2:/a>1]+0 plain"},
		{"a third one waits behind it", []*Lock{place("/a", 0, "1!", "2", "3"), place("/bb", 0, "2!", "1")},
			"[1:/bb>2 2:/a>1]+1 plain"},
		{"who is between is not in the circle", []*Lock{place("/a", 0, "1!", "3", "2"), place("/bb", 0, "2!", "1")},
			"[1:/bb>2 2:/a>1]+1 plain"},
		{"three in a circle", []*Lock{place("/a", 0, "1!", "3"), place("/bb", 0, "2!", "1"), place("/ccc", 0, "3!", "2")},
			"[1:/bb>2 2:/ccc>3 3:/a>1]+0 plain"},
		{"two circles", []*Lock{place("/a", 0, "1!", "2"), place("/bb", 0, "2!", "1"), place("/ccc", 0, "3!", "4"), place("/dddd", 0, "4!", "3")},
			"[1:/bb>2 2:/a>1]+0 plain [3:/dddd>4 4:/ccc>3]+0 plain"},
		{"readers hold together", []*Lock{place("/a", 0, "1r!", "2r!"), place("/bb", 0, "1!", "2")}, ""},
		{"two readers that both want to write", []*Lock{place("/a", 0, "1r!", "2r!", "1", "2")},
			"[1:/a>2 2:/a>1]+0 plain"},
		{"a reader behind a writer who waits for a reader", []*Lock{place("/a", 0, "1r!", "2", "3r"), place("/bb", 0, "3!", "1")},
			"[1:/bb>3 3:/a>1]+1 plain"},
		{"a permit that another one can release", []*Lock{place("/s", 2, "1p!", "2p!", "3p"), place("/bb", 0, "3!", "1")}, ""},
		{"all permits in the circle", []*Lock{place("/s", 2, "1p!", "2p!", "3p"), place("/bb", 0, "3!", "1", "2")},
			"[1:/bb>3 3:/s>1]+1 plain"},
		{"a permit is free", []*Lock{place("/s", 3, "1p!", "2p!", "3p"), place("/bb", 0, "3!", "1", "2")}, ""},
		{"nobody wrote how many permits", []*Lock{place("/s", 0, "1p!", "3p", "4p"), place("/bb", 0, "3!", "1")},
			"[1:/bb>3 3:/s>1]+1 plain"},
		{"who stands at the gate with a permit has several threads", []*Lock{place("/s", 1, "1p!", "1p", "2p"), place("/bb", 0, "2!", "1")},
			"[1:/bb>2 2:/s>1]+0"},
		{"a gate goes on with what one thread gives", []*Lock{place("/s", 2, "5p!", "2p!", "3p", "4p"), place("/bb", 0, "4!", "1r", "3")}, ""},
		{"one session, several threads", []*Lock{place("/a", 0, "1!", "1", "1")}, ""},
		{"one of a circle waits for two things", []*Lock{place("/a", 0, "1!", "2"), place("/bb", 0, "2!", "1"), place("/ccc", 0, "4!", "1")},
			"[1:/bb>2 2:/a>1]+0"},
		{"through one's own place in line", []*Lock{place("/a", 0, "2!", "1", "1"), place("/bb", 0, "1!", "2")},
			"[1:/a>2 2:/bb>1]+0"},
		{"nobody's znode", []*Lock{place("/a", 0, "0!", "1"), place("/bb", 0, "1!", "0")}, ""},
		{"strays", []*Lock{place("/a", 0, "1!", "2s"), place("/bb", 0, "2!", "1")}, ""},
	}
	for _, tt := range tests {
		got := ""
		for _, d := range Deadlocks(tt.locks) {
			if got != "" {
				got += " "
			}
			got += word(d)
		}
		if got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
		for range 10 { // the maps inside have an order of their own each time
			locks := slices.Clone(tt.locks)
			rand.Shuffle(len(locks), func(i, j int) { locks[i], locks[j] = locks[j], locks[i] })
			if again := len(Deadlocks(locks)); again != len(Deadlocks(tt.locks)) {
				t.Errorf("%s: %d circles in another order", tt.name, again)
			}
		}
	}
}

// word writes a deadlock in one word.
func word(d Deadlock) string {
	text := "["
	for i, l := range d.Cycle {
		next := d.Cycle[(i+1)%len(d.Cycle)]
		if i > 0 {
			text += " "
		}
		text += fmt.Sprintf("%d:%s>%d", l.Session, l.Waits.Path, next.Holds.Session)
	}
	text += fmt.Sprintf("]+%d", d.Blocked)
	if d.Certain {
		text += " plain"
	}
	return text
}

// world is locks and sessions that take and release them, one thread a session
// unless several may wait at once.
type world struct {
	rnd   *rand.Rand
	locks []*Lock
	next  int64 // token
}

// newWorld makes free locks, every third a semaphore.
func newWorld(rnd *rand.Rand, n int) *world {
	w := &world{rnd: rnd}
	for i := range n {
		l := &Lock{Path: fmt.Sprintf("/l%d", i), Kind: KindQueue}
		if i%3 == 2 {
			l.Kind, l.Permits = KindSemaphore, 1+rnd.IntN(2)
		}
		w.locks = append(w.locks, l)
	}
	return w
}

// waits reports whether a session waits for anything.
func (w *world) waits(session int64) bool {
	return slices.ContainsFunc(w.locks, func(l *Lock) bool {
		return slices.ContainsFunc(l.Entries, func(e Entry) bool { return e.Session == session && !e.Holder })
	})
}

// enter lets a session queue up at a lock at which it does not stand yet.
func (w *world) enter(session int64, l *Lock) {
	if slices.ContainsFunc(l.Entries, func(e Entry) bool { return e.Session == session }) {
		return
	}
	w.next++
	e := Entry{Entry: zklock.Entry{Path: l.Path, Name: fmt.Sprint(w.next), Token: w.next, Session: session, Mode: zklock.Exclusive}}
	e.Node = l.Path + "/" + e.Name
	switch {
	case l.Kind == KindSemaphore:
		e.Mode, e.Node = zklock.Permit, l.Path+"/locks/"+e.Name
	case w.rnd.IntN(2) == 0:
		e.Mode = zklock.Shared
	}
	l.Entries = append(l.Entries, e)
	grant(l)
}

// leave removes what a session holds at a lock, or all that it has if it is over.
func (w *world) leave(session int64, l *Lock, over bool) {
	l.Entries = slices.DeleteFunc(slices.Clone(l.Entries), func(e Entry) bool { return e.Session == session && (over || e.Holder) })
	grant(l)
}

// grant gives a lock to whom it is due, by the plainest reading of the rules.
func grant(l *Lock) {
	if l.Kind == KindSemaphore {
		held := 0
		for i := range l.Entries { // permits come first
			e := &l.Entries[i]
			if e.Holder || held < l.Permits {
				held++
				e.Holder, e.Node = true, l.Path+"/leases/"+e.Name
			}
		}
		return
	}
	for i := range l.Entries {
		e := &l.Entries[i]
		blocked := slices.ContainsFunc(l.Entries[:i], func(o Entry) bool {
			return e.Mode == zklock.Exclusive || o.Mode == zklock.Exclusive
		})
		e.Holder = !blocked
	}
}

// turn lets a random session do something: one that waits does nothing, unless it
// has several threads.
func (w *world) turn(sessions int, threads bool) {
	session, l := int64(1+w.rnd.IntN(sessions)), w.locks[w.rnd.IntN(len(w.locks))]
	switch {
	case w.waits(session) && !threads:
	case w.rnd.IntN(4) == 0:
		w.leave(session, l, false)
	default:
		w.enter(session, l)
	}
}

// clone is the world as it is now.
func (w *world) clone() *world {
	c := *w
	c.locks = nil
	for _, l := range w.locks {
		c.locks = append(c.locks, seen(l))
	}
	return &c
}

// seen is a lock as it is now, for who looks.
func seen(l *Lock) *Lock {
	s := *l
	s.Entries = slices.Clone(l.Entries)
	return &s
}

// stuck lets every session that waits for nothing end, again and again, and returns
// those that never could.
func (w *world) stuck(sessions int) map[int64]bool {
	c := w.clone()
	left := map[int64]bool{}
	for s := range sessions {
		left[int64(s+1)] = true
	}
	for again := true; again; {
		again = false
		for s := range left {
			if !c.waits(s) {
				for _, l := range c.locks {
					c.leave(s, l, true)
				}
				delete(left, s)
				again = true
			}
		}
	}
	return left
}

// ahead reports whether a stands before b in the queue of a lock.
func ahead(l *Lock, a, b Entry) bool {
	at := func(x Entry) int {
		return slices.IndexFunc(l.Entries, func(e Entry) bool { return e.Token == x.Token })
	}
	return at(a) >= 0 && at(a) < at(b)
}

// checkCircle says what is wrong with a circle.
func checkCircle(w *world, d Deadlock, stuck map[int64]bool) error {
	sessions := map[int64]bool{}
	for i, link := range d.Cycle {
		next := d.Cycle[(i+1)%len(d.Cycle)]
		l := w.locks[slices.IndexFunc(w.locks, func(l *Lock) bool { return l.Path == link.Waits.Path })]
		switch {
		case sessions[link.Session]:
			return fmt.Errorf("session %d is in it twice", link.Session)
		case !stuck[link.Session]:
			return fmt.Errorf("session %d can go on", link.Session)
		case link.Waits.Session != link.Session || link.Holds.Session != link.Session:
			return fmt.Errorf("entries of others at session %d", link.Session)
		case link.Waits.Holder || !ahead(l, next.Holds, link.Waits):
			return fmt.Errorf("session %d does not wait for %d at %s", link.Session, next.Session, l.Path)
		case link.Session < d.Cycle[0].Session:
			return fmt.Errorf("it begins with %d", d.Cycle[0].Session)
		}
		sessions[link.Session] = true
	}
	if len(sessions) < 2 {
		return fmt.Errorf("%d sessions", len(sessions))
	}
	return nil
}

// TestDeadlocksOfWorlds compares with what becomes of random worlds when everybody
// who can releases all: who is left is in a circle or behind one, and nobody else.
func TestDeadlocksOfWorlds(t *testing.T) {
	deadlocked, several := 0, 0
	for seed := range uint64(6000) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		sessions, threads := 2+rnd.IntN(6), seed%3 == 2
		w := newWorld(rnd, 1+rnd.IntN(6))
		for range rnd.IntN(40) {
			w.turn(sessions, threads)
		}
		stuck := w.stuck(sessions)
		shown := w.clone()
		for _, l := range shown.locks { // as Curator leaves it: the number is nowhere
			if l.Kind == KindSemaphore && len(l.Entries) >= l.Permits && rnd.IntN(2) == 0 {
				l.Permits = 0
			}
		}
		found := Deadlocks(shown.locks)
		counted := 0
		for _, d := range found {
			counted += len(d.Cycle) + d.Blocked
			if err := checkCircle(w, d, stuck); err != nil {
				t.Fatalf("seed %d: %s: %v", seed, word(d), err)
			}
			if !d.Certain && !threads {
				t.Fatalf("seed %d: %s of single threads is not plain", seed, word(d))
			}
			if !d.Certain {
				several++
			}
		}
		if counted != len(stuck) {
			t.Fatalf("seed %d: %d sessions in circles or behind, and %d can't go on", seed, counted, len(stuck))
		}
		if len(found) > 0 {
			deadlocked++
		}
	}
	t.Logf("%d of 6000 worlds had a deadlock, %d circles with threads", deadlocked, several)
	if deadlocked < 500 || deadlocked > 5500 || several == 0 {
		t.Errorf("%d of 6000 worlds had a deadlock, %d with threads: the worlds test nothing", deadlocked, several)
	}
}

// look reads the locks one after another, while the world goes on.
func (w *world) look(sessions int) []*Lock {
	var all []*Lock
	for _, i := range w.rnd.Perm(len(w.locks)) {
		all = append(all, seen(w.locks[i]))
		for range w.rnd.IntN(30) {
			w.turn(sessions, false)
		}
	}
	return all
}

// TestSteady looks twice at worlds that go on meanwhile: what is found in both is a
// deadlock that was there, and one look alone finds some that never were.
func TestSteady(t *testing.T) {
	phantoms, true2 := 0, 0
	for seed := range uint64(6000) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		sessions := 2 + rnd.IntN(2)
		w := newWorld(rnd, 2+rnd.IntN(3))
		for range rnd.IntN(6) {
			w.turn(sessions, false)
		}
		first := w.look(sessions)
		second := w.look(sessions)
		stuck := w.stuck(sessions) // a deadlock stays
		for _, d := range Deadlocks(first) {
			if slices.ContainsFunc(d.Cycle, func(l Link) bool { return !stuck[l.Session] }) {
				phantoms++
			}
		}
		for _, d := range Deadlocks(Unchanged(first, second)) {
			true2++
			for _, l := range d.Cycle {
				if !stuck[l.Session] {
					t.Fatalf("seed %d: %s, but session %d can go on", seed, word(d), l.Session)
				}
			}
		}
	}
	t.Logf("%d circles that never were in one look, %d true ones in both", phantoms, true2)
	if phantoms == 0 || true2 == 0 {
		t.Errorf("%d circles that never were in one look, %d true ones in both: the worlds test nothing", phantoms, true2)
	}
}

// TestSteadySemaphore keeps off a gate beside which permits come and go.
func TestSteadySemaphore(t *testing.T) {
	other := place("/bb", 0, "3!", "1", "2")
	first := []*Lock{place("/s", 2, "1p!", "2p!", "3p"), other}
	if got := Deadlocks(Unchanged(first, first)); len(got) != 1 {
		t.Errorf("%d circles of what stays, want 1", len(got))
	}
	for _, second := range []*Lock{
		place("/s", 2, "1p!", "4p!", "3p"), // one left, and another one came
		place("/s", 0, "1p!", "3p"),        // one left
	} {
		second.Entries[len(second.Entries)-1] = first[0].Entries[2]
		if got := Deadlocks(Unchanged(first, []*Lock{second, other})); len(got) != 0 {
			t.Errorf("circle %s beside a permit that was to be had", word(got[0]))
		}
	}
}

// TestDeadlocksWithin: a command inside a command waits in a session of its own, and
// keeps the outer one's locks from being given back.
func TestDeadlocksWithin(t *testing.T) {
	a, b := place("/a", 0, "1!", "4"), place("/bb", 0, "2!", "3")
	if got := Deadlocks([]*Lock{a, b}); len(got) != 0 {
		t.Errorf("%s of sessions that nothing connects", word(got[0]))
	}
	within := func(e *Entry, host, session string) {
		e.Owner = zklock.Owner{Host: host, ParentSession: session}
	}
	within(&a.Entries[0], "h", "")
	within(&b.Entries[1], "h", "0x1")
	within(&b.Entries[0], "g", "")
	within(&a.Entries[1], "g", "0x2")
	got := Deadlocks([]*Lock{a, b})
	if len(got) != 1 || word(got[0]) != "[1:/bb>2 2:/a>1]+0 plain" {
		t.Fatalf("%+v", got)
	}
	if a.Entries[1].Session != 4 {
		t.Error("the locks were changed")
	}
	// Whoever says that he is inside another's command, and is on another machine.
	for _, lie := range []string{"0x1", "0x99", "x", "", "0x3", "-1", "0xfffffffffffffffff"} {
		within(&b.Entries[1], "elsewhere", lie)
		if got := Deadlocks([]*Lock{a, b}); len(got) != 0 {
			t.Errorf("%s: %s", lie, word(got[0]))
		}
	}
	// Two who say it of each other.
	within(&a.Entries[0], "h", "0x3")
	within(&b.Entries[1], "h", "0x1")
	Deadlocks([]*Lock{a, b})
}

// TestDeadlocksAreFast: a queue of many thousands, all behind one circle, takes no
// longer than to look through it.
func TestDeadlocksAreFast(t *testing.T) {
	words := []string{"1!", "2"}
	for i := range 50_000 {
		words = append(words, fmt.Sprint(i+3))
	}
	locks := []*Lock{place("/a", 0, words...), place("/bb", 0, "2!", "1")}
	began := time.Now()
	found := Deadlocks(locks)
	if len(found) != 1 || found[0].Blocked != 50_000 {
		t.Errorf("%d circles", len(found))
	}
	if took := time.Since(began); took > 2*time.Minute {
		t.Errorf("took %v", took)
	}
}
