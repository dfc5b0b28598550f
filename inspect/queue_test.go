package inspect

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/zklock/zklock/internal/queue"
)

// TestDurationCounts checks that quantiles are accurate to 10%, and that remove undoes add.
func TestDurationCounts(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var all []time.Duration
	var tl durationCounts
	for range 5000 {
		d := time.Duration(rnd.ExpFloat64() * float64(time.Minute))
		all = append(all, d)
		tl.add(d)
	}
	extra := []time.Duration{0, -time.Second, time.Microsecond, time.Second, 1000 * time.Hour}
	for _, d := range extra {
		tl.add(d)
	}
	for _, d := range extra {
		tl.remove(d)
	}
	tl.remove(3000 * time.Hour) // was not added
	slices.Sort(all)
	got := tl.times()
	for _, q := range []struct{ got, want float64 }{{got.P50, all[2499].Seconds()}, {got.P99, all[4949].Seconds()}} {
		if q.got < q.want*0.9 || q.got > q.want*1.1 {
			t.Errorf("a quantile is %v, want %v", q.got, q.want)
		}
	}
	if got.Count != 5000 || got.Max != (1000*time.Hour).Seconds() {
		t.Errorf("%+v", got)
	}
	if none := (&durationCounts{}).times(); none != (DurationStats{}) {
		t.Errorf("of nothing: %+v", none)
	}
}

// TestBudgetLimitsRate checks that the average does not exceed the rate, however much is spent at
// once, and that slow reads leave half of it.
func TestBudgetLimitsRate(t *testing.T) {
	b := budget{rate: 50}
	now := time.Unix(1000, 0)
	rnd := rand.New(rand.NewPCG(3, 4))
	spent, begun := 0, now
	for range 2000 {
		if wait := b.wait(quick, now); wait > 0 {
			now = now.Add(wait)
			continue
		}
		n := 1 + rnd.IntN(20)
		b.spend(quick, n)
		spent += n
		now = now.Add(time.Duration(rnd.IntN(100)) * time.Millisecond)
	}
	took := now.Sub(begun).Seconds()
	if most := 50*(took+1) + 20; float64(spent) > most || float64(spent) < most*0.8 {
		t.Errorf("%d reads in %.0f s, want nearly %.0f", spent, took, most)
	}
	now = now.Add(time.Hour)
	if b.wait(quick, now) != 0 || b.left[quick] > b.rate {
		t.Errorf("after an idle hour, %v reads are left, want those of one second", b.left)
	}
	if b.wait(quick, now.Add(-time.Minute)) != 0 {
		t.Error("a clock that goes back makes it wait")
	}
	const most = 100 // seconds
	var of [speeds]int
	for range most * 1000 {
		now = now.Add(time.Millisecond)
		for speed, n := range map[speed]int{quick: 2, slow: 2000} { // of a slow lock with many entries
			if b.wait(speed, now) == 0 {
				b.spend(speed, n)
				of[speed] += n
			}
		}
	}
	if all := of[quick] + of[slow]; of[quick] < most*50/2 || all > most*50+2000 {
		t.Errorf("%d quick and %d slow reads in %d s", of[quick], of[slow], most)
	}
}

// TestLockQueueMatchesSort checks that the queue has the same holders as a sorted listing, in
// whatever order entries are added and removed.
func TestLockQueueMatchesSort(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	markers := []string{"-lock-", "-__READ__", "-__READ__", "-__READ__", "-__WRIT__", "-latch-"}
	var l lockQueue
	var names []string
	entries := map[string]queue.Entry{}
	granted := map[string]bool{}
	for step := range 3000 {
		now := time.Unix(int64(step), 0)
		if len(names) > 0 && rnd.IntN(2) == 0 {
			i := rnd.IntN(len(names))
			if m, found := l.remove(entries[names[i]], int64(step), true); !found || m.holder != granted[names[i]] {
				t.Fatalf("step %d: %s was held: %t, %t", step, names[i], m.holder, granted[names[i]])
			}
			names = slices.Delete(names, i, i+1)
		} else {
			name := fmt.Sprintf("_c_%s%s%010d", guid, markers[rnd.IntN(len(markers))], rnd.IntN(1_000_000))
			if slices.Contains(names, name) {
				continue
			}
			e, class := queue.ParseName(name)
			if class != queue.Contender {
				t.Fatal(name)
			}
			entries[name] = e
			l.add(member{Entry: e, arrived: now}, false)
			l.add(member{Entry: e, arrived: now}, false) // reported twice
			names = append(names, name)
		}
		l.updateHolders(now, false, func(m *member) {
			if granted[m.Name] {
				t.Errorf("step %d: %s is granted again", step, m.Name)
			}
			granted[m.Name] = true
		})
		all := queue.Sort(names).Queue
		for i, e := range all {
			m, found := l.find(e)
			if !found || i < queue.Holders(all) && !m.holder {
				t.Fatalf("step %d: %s is number %d of %d holders, the queue says %t", step, e.Name, i, queue.Holders(all), m.holder)
			}
		}
		if len(l.queue) != len(names) {
			t.Fatalf("step %d: %d of %d", step, len(l.queue), len(names))
		}
	}
}

// TestPermitIsHeldAfterGateEntryIsDeleted: a permit that is created while an earlier entry is at
// the gate is held once that entry is deleted.
func TestPermitIsHeldAfterGateEntryIsDeleted(t *testing.T) {
	now := time.Unix(1, 0)
	var l lockQueue
	var granted []string
	settle := func() { l.updateHolders(now, true, func(m *member) { granted = append(granted, m.Name) }) }
	entry := func(name string, seq int64) member { return member{Entry: queue.Entry{Name: name, Seq: seq}} }
	l.add(entry("g1", 1), false)
	lease := entry("p1", 2)
	lease.gate = l.firstAtGate().Entry
	l.add(lease, true)
	if settle(); len(granted) != 0 {
		t.Errorf("held before there is room: %q", granted)
	}
	// A listing without it does not remove it.
	l.reconcile(&Lock{}, queue.Names{}, -1)
	l.add(entry("g2", 3), false)
	if _, found := l.remove(entry("g1", 1).Entry, 1, true); !found {
		t.Error("the gate's entry is unknown")
	}
	if settle(); !slices.Equal(granted, []string{"p1"}) {
		t.Errorf("granted %q", granted)
	}
	if m, found := l.remove(lease.Entry, 2, true); !found || !m.holder {
		t.Errorf("%+v, %t", m, found)
	}
	alone := entry("p2", 4)
	l.remove(entry("g2", 3).Entry, 3, true)
	l.add(alone, true)
	if settle(); !slices.Equal(granted, []string{"p1", "p2"}) {
		t.Errorf("granted %q", granted)
	}
}

// TestEndedTogether checks that holds count as ended together if they are of one session, of
// different locks, and were acquired at different times.
func TestEndedTogether(t *testing.T) {
	e := func(session, token int64, path string) ending {
		return ending{session: session, token: token, path: path}
	}
	for _, tt := range []struct {
		name  string
		ended []ending
		want  []bool
	}{
		{"nothing", nil, []bool{}},
		{"one", []ending{e(1, 1, "/a")}, []bool{false}},
		{"two of one session", []ending{e(1, 1, "/a"), e(1, 2, "/b")}, []bool{true, true}},
		{"acquired together", []ending{e(1, 1, "/a"), e(1, 1, "/b")}, []bool{false, false}},
		{"one after another", []ending{e(1, 1, "/a"), e(1, 2, "/a")}, []bool{false, false}},
		{"of two sessions", []ending{e(1, 1, "/a"), e(2, 2, "/b")}, []bool{false, false}},
		{"of unknown sessions", []ending{e(0, 1, "/a"), e(0, 2, "/b")}, []bool{false, false}},
		{"a pair and one", []ending{e(1, 1, "/a"), e(2, 2, "/b"), e(1, 3, "/c")}, []bool{true, false, true}},
	} {
		if got := endedTogether(tt.ended, func(ending) int64 { return 0 }); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
	if got := endedTogether([]ending{e(1, 1, "/a"), e(1, 2, "/b")}, func(x ending) int64 { return x.token }); slices.Contains(got, true) {
		t.Error("holds of two transactions ended together")
	}
}

// TestRecorderKeepsAnHour checks the number of steps that a recorder keeps.
func TestRecorderKeepsAnHour(t *testing.T) {
	c := &recorder{step: 10 * time.Second}
	begun := time.Unix(1_000_000, 0)
	for i := range 2000 {
		now := begun.Add(time.Duration(i) * 5 * time.Second)
		c.granted(now, time.Second)
		c.released(now, -1)
	}
	now := begun.Add(2000 * 5 * time.Second)
	c.lost(now, true)
	c.granted(now.Add(-9*time.Second), -1) // the clock was set back a little
	h := c.history(begun, now)
	if len(h.Points) < 359 || len(h.Points) > 362 || len(c.points) > 362 {
		t.Errorf("%d points, %d kept", len(h.Points), len(c.points))
	}
	if h.Grants != 2001 || h.Releases != 2000 || h.Losses != 1 || h.Broken != 1 || h.Wait.Count != 2000 || h.Hold.Count != 0 {
		t.Errorf("%+v", h)
	}
	for i, p := range h.Points[1 : len(h.Points)-1] {
		if p.Grants != 2 || p.At.Sub(h.Points[i].At) != 10*time.Second {
			t.Errorf("point %d: %+v after %v", i, p, h.Points[i].At)
		}
	}
}
