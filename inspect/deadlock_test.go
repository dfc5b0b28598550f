package inspect

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/zklock/zklock"
)

// testLock returns a lock with an entry for each word: the number of the session, then "r" for a
// reader, "p" for a permit, "s" for a stray, and "!" for a holder.
func testLock(path string, permits int, words ...string) *Lock {
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
// deadlock, whatever the order in which they acquired them.
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
		l := testLock("/a", 0, "1!", "2", "1r")
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
		{"one queue", []*Lock{testLock("/a", 0, "1!", "2", "3")}, ""},
		{"two locks in one order", []*Lock{testLock("/a", 0, "1!", "2"), testLock("/bb", 0, "1!")}, ""},
		{"two sessions each wait for the other's lock", []*Lock{testLock("/a", 0, "1!", "2"), testLock("/bb", 0, "2!", "1")},
			"[1:/bb>2 2:/a>1]+0 plain"},
		{"a third session waits for the cycle", []*Lock{testLock("/a", 0, "1!", "2", "3"), testLock("/bb", 0, "2!", "1")},
			"[1:/bb>2 2:/a>1]+1 plain"},
		{"a waiter between two entries is not in the cycle", []*Lock{testLock("/a", 0, "1!", "3", "2"), testLock("/bb", 0, "2!", "1")},
			"[1:/bb>2 2:/a>1]+1 plain"},
		{"a cycle of three", []*Lock{testLock("/a", 0, "1!", "3"), testLock("/bb", 0, "2!", "1"), testLock("/ccc", 0, "3!", "2")},
			"[1:/bb>2 2:/ccc>3 3:/a>1]+0 plain"},
		{"two cycles", []*Lock{testLock("/a", 0, "1!", "2"), testLock("/bb", 0, "2!", "1"), testLock("/ccc", 0, "3!", "4"), testLock("/dddd", 0, "4!", "3")},
			"[1:/bb>2 2:/a>1]+0 plain [3:/dddd>4 4:/ccc>3]+0 plain"},
		{"readers hold together", []*Lock{testLock("/a", 0, "1r!", "2r!"), testLock("/bb", 0, "1!", "2")}, ""},
		{"two readers that both wait for a writer's lock", []*Lock{testLock("/a", 0, "1r!", "2r!", "1", "2")},
			"[1:/a>2 2:/a>1]+0 plain"},
		{"a reader waits for a writer that waits for a reader", []*Lock{testLock("/a", 0, "1r!", "2", "3r"), testLock("/bb", 0, "3!", "1")},
			"[1:/bb>3 3:/a>1]+1 plain"},
		{"a permit that another one can release", []*Lock{testLock("/s", 2, "1p!", "2p!", "3p"), testLock("/bb", 0, "3!", "1")}, ""},
		{"all permits in the cycle", []*Lock{testLock("/s", 2, "1p!", "2p!", "3p"), testLock("/bb", 0, "3!", "1", "2")},
			"[1:/bb>3 3:/s>1]+1 plain"},
		{"a permit is free", []*Lock{testLock("/s", 3, "1p!", "2p!", "3p"), testLock("/bb", 0, "3!", "1", "2")}, ""},
		{"the size is not stored", []*Lock{testLock("/s", 0, "1p!", "3p", "4p"), testLock("/bb", 0, "3!", "1")},
			"[1:/bb>3 3:/s>1]+1 plain"},
		{"a session with a permit and an entry at the gate has several threads", []*Lock{testLock("/s", 1, "1p!", "1p", "2p"), testLock("/bb", 0, "2!", "1")},
			"[1:/bb>2 2:/s>1]+0"},
		{"one release grants the entry at the gate", []*Lock{testLock("/s", 2, "5p!", "2p!", "3p", "4p"), testLock("/bb", 0, "4!", "1r", "3")}, ""},
		{"no permit is held yet", []*Lock{testLock("/s", 2, "1p", "2p", "3p")}, ""},
		{"no permit is held yet, and the size is not stored", []*Lock{testLock("/s", 0, "1p", "2p", "3p")}, ""},
		{"the first entry at the gate takes the free permit", []*Lock{testLock("/s", 1, "1p", "2p"), testLock("/bb", 0, "2!", "1")},
			"[1:/bb>2 2:/s>1]+0"},
		{"another permit is free", []*Lock{testLock("/s", 2, "1p", "2p"), testLock("/bb", 0, "2!", "1")}, ""},
		{"a session waits for its own permit", []*Lock{testLock("/s", 1, "1p", "1p", "2p")}, ""},
		{"a permit without a session", []*Lock{testLock("/s", 1, "0p!", "2p", "3p")}, ""},
		{"a waiter for a permit without a session holds a lock", []*Lock{testLock("/s", 1, "0p!", "2p"), testLock("/bb", 0, "2!", "1"), testLock("/ccc", 0, "1!", "3")}, ""},
		{"one session, several threads", []*Lock{testLock("/a", 0, "1!", "1", "1")}, ""},
		{"one session of the cycle waits for two locks", []*Lock{testLock("/a", 0, "1!", "2"), testLock("/bb", 0, "2!", "1"), testLock("/ccc", 0, "4!", "1")},
			"[1:/bb>2 2:/a>1]+0"},
		{"a session waits for its own entry", []*Lock{testLock("/a", 0, "2!", "1", "1"), testLock("/bb", 0, "1!", "2")},
			"[1:/a>2 2:/bb>1]+0"},
		{"znodes without a session", []*Lock{testLock("/a", 0, "0!", "1"), testLock("/bb", 0, "1!", "0")}, ""},
		{"strays", []*Lock{testLock("/a", 0, "1!", "2s"), testLock("/bb", 0, "2!", "1")}, ""},
	}
	for _, tt := range tests {
		got := ""
		for _, d := range Deadlocks(tt.locks) {
			if got != "" {
				got += " "
			}
			got += describeDeadlock(d)
		}
		if got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
		for range 10 { // the order of maps differs each time
			locks := slices.Clone(tt.locks)
			rand.Shuffle(len(locks), func(i, j int) { locks[i], locks[j] = locks[j], locks[i] })
			if again := len(Deadlocks(locks)); again != len(Deadlocks(tt.locks)) {
				t.Errorf("%s: %d cycles in another order", tt.name, again)
			}
		}
	}
}

// describeDeadlock returns each link as "session:path>session", and the blocked sessions.
func describeDeadlock(d Deadlock) string {
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

// lockModel is a model of sessions that acquire and release locks. A session has one thread,
// unless step says otherwise.
type lockModel struct {
	rnd   *rand.Rand
	locks []*Lock
	next  int64 // token
}

// newLockModel returns n free locks, of which every third is a semaphore.
func newLockModel(rnd *rand.Rand, n int) *lockModel {
	w := &lockModel{rnd: rnd}
	for i := range n {
		l := &Lock{Path: fmt.Sprintf("/l%d", i), Kind: KindQueue}
		if i%3 == 2 {
			l.Kind, l.Permits = KindSemaphore, 1+rnd.IntN(2)
		}
		w.locks = append(w.locks, l)
	}
	return w
}

// waits reports whether a session waits for a lock.
func (w *lockModel) waits(session int64) bool {
	return slices.ContainsFunc(w.locks, func(l *Lock) bool {
		return slices.ContainsFunc(l.Entries, func(e Entry) bool { return e.Session == session && !e.Holder })
	})
}

// enqueue adds an entry of a session to a lock, unless it has one.
func (w *lockModel) enqueue(session int64, l *Lock) {
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

// release removes the holds of a session at a lock, or all its entries if the session has ended.
func (w *lockModel) release(session int64, l *Lock, ended bool) {
	l.Entries = slices.DeleteFunc(slices.Clone(l.Entries), func(e Entry) bool { return e.Session == session && (ended || e.Holder) })
	grant(l)
}

// grant sets the holders of a lock.
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

// step lets a random session acquire or release a lock. A session that waits does nothing,
// unless it has several threads.
func (w *lockModel) step(sessions int, threads bool) {
	session, l := int64(1+w.rnd.IntN(sessions)), w.locks[w.rnd.IntN(len(w.locks))]
	switch {
	case w.waits(session) && !threads:
	case w.rnd.IntN(4) == 0:
		w.release(session, l, false)
	default:
		w.enqueue(session, l)
	}
}

// clone returns a copy of the model.
func (w *lockModel) clone() *lockModel {
	c := *w
	c.locks = nil
	for _, l := range w.locks {
		c.locks = append(c.locks, copyOf(l))
	}
	return &c
}

// copyOf returns a copy of a lock.
func copyOf(l *Lock) *Lock {
	s := *l
	s.Entries = slices.Clone(l.Entries)
	return &s
}

// stuck ends sessions that do not wait until only waiting sessions are left, and returns these.
func (w *lockModel) stuck(sessions int) map[int64]bool {
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
					c.release(s, l, true)
				}
				delete(left, s)
				again = true
			}
		}
	}
	return left
}

// ahead reports whether a is ahead of b in the queue of a lock.
func ahead(l *Lock, a, b Entry) bool {
	at := func(x Entry) int {
		return slices.IndexFunc(l.Entries, func(e Entry) bool { return e.Token == x.Token })
	}
	return at(a) >= 0 && at(a) < at(b)
}

// checkCycle returns an error if the cycle of d is not one of the model.
func checkCycle(w *lockModel, d Deadlock, stuck map[int64]bool) error {
	sessions := map[int64]bool{}
	for i, link := range d.Cycle {
		next := d.Cycle[(i+1)%len(d.Cycle)]
		l := w.locks[slices.IndexFunc(w.locks, func(l *Lock) bool { return l.Path == link.Waits.Path })]
		switch {
		case sessions[link.Session]:
			return fmt.Errorf("session %d is in it twice", link.Session)
		case !stuck[link.Session]:
			return fmt.Errorf("session %d can continue", link.Session)
		case link.Waits.Session != link.Session || link.Holds.Session != link.Session:
			return fmt.Errorf("entries of other sessions at session %d", link.Session)
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

// TestDeadlocksMatchModel compares Deadlocks with random models: exactly the sessions that are
// stuck are in a cycle or blocked by one.
func TestDeadlocksMatchModel(t *testing.T) {
	deadlocked, several := 0, 0
	for seed := range uint64(6000) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		sessions, threads := 2+rnd.IntN(6), seed%3 == 2
		w := newLockModel(rnd, 1+rnd.IntN(6))
		for range rnd.IntN(40) {
			w.step(sessions, threads)
		}
		stuck := w.stuck(sessions)
		shown := w.clone()
		for _, l := range shown.locks { // as with Curator, which does not store the size
			if l.Kind == KindSemaphore && len(l.Entries) >= l.Permits && rnd.IntN(2) == 0 {
				l.Permits = 0
			}
		}
		found := Deadlocks(shown.locks)
		counted := 0
		for _, d := range found {
			counted += len(d.Cycle) + d.Blocked
			if err := checkCycle(w, d, stuck); err != nil {
				t.Fatalf("seed %d: %s: %v", seed, describeDeadlock(d), err)
			}
			if !d.Certain && !threads {
				t.Fatalf("seed %d: %s of single threads is not plain", seed, describeDeadlock(d))
			}
			if !d.Certain {
				several++
			}
		}
		if counted != len(stuck) {
			t.Fatalf("seed %d: %d sessions in cycles or blocked by them, and %d are stuck", seed, counted, len(stuck))
		}
		if len(found) > 0 {
			deadlocked++
		}
	}
	t.Logf("%d of 6000 models had a deadlock, %d cycles with threads", deadlocked, several)
	if deadlocked < 500 || deadlocked > 5500 || several == 0 {
		t.Errorf("%d of 6000 models had a deadlock, %d with threads: this tests nothing", deadlocked, several)
	}
}

// snapshot copies the locks one after another, with steps in between.
func (w *lockModel) snapshot(sessions int) []*Lock {
	var all []*Lock
	for _, i := range w.rnd.Perm(len(w.locks)) {
		all = append(all, copyOf(w.locks[i]))
		for range w.rnd.IntN(30) {
			w.step(sessions, false)
		}
	}
	return all
}

// TestUnchangedRemovesFalseDeadlocks checks that the locks that two snapshots have in common show
// only deadlocks that exist. A single snapshot also shows others.
func TestUnchangedRemovesFalseDeadlocks(t *testing.T) {
	phantoms, confirmed := 0, 0
	for seed := range uint64(6000) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		sessions := 2 + rnd.IntN(2)
		w := newLockModel(rnd, 2+rnd.IntN(3))
		for range rnd.IntN(6) {
			w.step(sessions, false)
		}
		first := w.snapshot(sessions)
		second := w.snapshot(sessions)
		stuck := w.stuck(sessions) // a deadlock stays
		for _, d := range Deadlocks(first) {
			if slices.ContainsFunc(d.Cycle, func(l Link) bool { return !stuck[l.Session] }) {
				phantoms++
			}
		}
		for _, d := range Deadlocks(Unchanged(first, second)) {
			confirmed++
			for _, l := range d.Cycle {
				if !stuck[l.Session] {
					t.Fatalf("seed %d: %s, but session %d can continue", seed, describeDeadlock(d), l.Session)
				}
			}
		}
	}
	t.Logf("%d false cycles in one snapshot, %d cycles in both", phantoms, confirmed)
	if phantoms == 0 || confirmed == 0 {
		t.Errorf("%d false cycles in one snapshot, %d cycles in both: this tests nothing", phantoms, confirmed)
	}
}

// TestUnchangedOmitsChangedSemaphore checks that no deadlock includes a semaphore whose permits
// changed between two snapshots.
func TestUnchangedOmitsChangedSemaphore(t *testing.T) {
	other := testLock("/bb", 0, "3!", "1", "2")
	first := []*Lock{testLock("/s", 2, "1p!", "2p!", "3p"), other}
	if got := Deadlocks(Unchanged(first, first)); len(got) != 1 {
		t.Errorf("%d cycles of unchanged locks, want 1", len(got))
	}
	for _, second := range []*Lock{
		testLock("/s", 2, "1p!", "4p!", "3p"), // one permit released, another one acquired
		testLock("/s", 0, "1p!", "3p"),        // one permit released
	} {
		second.Entries[len(second.Entries)-1] = first[0].Entries[2]
		if got := Deadlocks(Unchanged(first, []*Lock{second, other})); len(got) != 0 {
			t.Errorf("cycle %s, although a permit was free", describeDeadlock(got[0]))
		}
	}
}

// TestDeadlocksOfNestedCommands: a nested command waits in its own session, and the outer command
// keeps its locks meanwhile.
func TestDeadlocksOfNestedCommands(t *testing.T) {
	a, b := testLock("/a", 0, "1!", "4"), testLock("/bb", 0, "2!", "3")
	if got := Deadlocks([]*Lock{a, b}); len(got) != 0 {
		t.Errorf("%s of unrelated sessions", describeDeadlock(got[0]))
	}
	within := func(e *Entry, host, session string) {
		e.Owner = zklock.Owner{Host: host, ParentSession: session}
	}
	within(&a.Entries[0], "h", "")
	within(&b.Entries[1], "h", "0x1")
	within(&b.Entries[0], "g", "")
	within(&a.Entries[1], "g", "0x2")
	got := Deadlocks([]*Lock{a, b})
	if len(got) != 1 || describeDeadlock(got[0]) != "[1:/bb>2 2:/a>1]+0 plain" {
		t.Fatalf("%+v", got)
	}
	if a.Entries[1].Session != 4 {
		t.Error("the locks were changed")
	}
	// A command that names an outer session of another machine.
	for _, lie := range []string{"0x1", "0x99", "x", "", "0x3", "-1", "0xfffffffffffffffff"} {
		within(&b.Entries[1], "elsewhere", lie)
		if got := Deadlocks([]*Lock{a, b}); len(got) != 0 {
			t.Errorf("%s: %s", lie, describeDeadlock(got[0]))
		}
	}
	// Two commands that name each other.
	within(&a.Entries[0], "h", "0x3")
	within(&b.Entries[1], "h", "0x1")
	Deadlocks([]*Lock{a, b})
}

// TestDeadlocksOfLongQueuesAreFast checks that the time does not grow with the square of the number
// of entries.
func TestDeadlocksOfLongQueuesAreFast(t *testing.T) {
	// several returns words for n sessions from the first on.
	several := func(first, n int, mark string) (words []string) {
		for i := range n {
			words = append(words, fmt.Sprint(first+i)+mark)
		}
		return words
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection would count for some sizes only
	queue := func(words ...[]string) *Lock { return testLock("/a", 0, slices.Concat(words...)...) }
	for name, locks := range map[string]func(n int) []*Lock{
		"stuck holder": func(n int) []*Lock {
			return []*Lock{queue([]string{"1!", "2"}, several(10, n, "")), testLock("/bb", 0, "2!", "1")}
		},
		"working holder": func(n int) []*Lock {
			return []*Lock{queue([]string{"1!", "2", "3"}, several(10, n, "")), testLock("/bb", 0, "3!", "2")}
		},
		"working readers": func(n int) []*Lock {
			return []*Lock{queue(several(n+10, n, "r!"), []string{"2", "3"}, several(10, n, "")), testLock("/bb", 0, "3!", "2")}
		},
		"working holders of permits": func(n int) []*Lock {
			sem := testLock("/s", n/2, slices.Concat(several(n+10, n/2, "p!"), several(10, n, "p"))...)
			return []*Lock{sem, queue([]string{"2!", "3"}, several(10, n/2, "")), testLock("/bb", 0, "3!", "2")}
		},
	} {
		// search returns the time to search the locks of n sessions several times.
		search := func(n, times int) time.Duration {
			all := locks(n)
			runtime.GC()
			began := time.Now()
			for range times {
				if found := Deadlocks(all); len(found) != 1 || len(found[0].Cycle) != 2 || found[0].Blocked != n {
					t.Fatalf("%s: %d cycles of %d sessions", name, len(found), n)
				}
			}
			return time.Since(began)
		}
		// Both times are for as many sessions in all and taken in turns, so other programs delay
		// both alike. If the time grew with the square, the second one would be longer by the
		// factor.
		const n, factor, limit, least, most = 500, 16, 6, 5, 20
		short, long := time.Hour, time.Hour
		for try := 0; try < least || try < most && long > limit*short; try++ {
			short, long = min(short, search(n, factor)), min(long, search(factor*n, 1))
		}
		if t.Logf("%s: %v for %d searches, and %v for one with as many sessions", name, short, factor, long); long > limit*short {
			t.Errorf("%s: the time grows faster than the number of sessions", name)
		}
	}
}
