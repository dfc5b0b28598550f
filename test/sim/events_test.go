package sim

import "time"

// event runs at a moment of true time. Events of the same moment run in the order in which
// they were added.
type event struct {
	at  time.Duration
	seq uint64
	run func()
}

// agenda is a heap of events with the next one first.
type agenda struct {
	heap []event
	seq  uint64
}

func (a *agenda) before(i, j int) bool {
	x, y := &a.heap[i], &a.heap[j]
	return x.at < y.at || x.at == y.at && x.seq < y.seq
}

func (a *agenda) add(at time.Duration, run func()) {
	a.seq++
	a.heap = append(a.heap, event{at, a.seq, run})
	for i := len(a.heap) - 1; i > 0; {
		up := (i - 1) / 2
		if !a.before(i, up) {
			break
		}
		a.heap[i], a.heap[up] = a.heap[up], a.heap[i]
		i = up
	}
}

// next removes the next event. ok is false if there is none.
func (a *agenda) next() (e event, ok bool) {
	if len(a.heap) == 0 {
		return event{}, false
	}
	e = a.heap[0]
	last := len(a.heap) - 1
	a.heap[0] = a.heap[last]
	a.heap[last] = event{}
	a.heap = a.heap[:last]
	for i := 0; ; {
		least := i
		for down := 2*i + 1; down <= 2*i+2 && down < last; down++ {
			if a.before(down, least) {
				least = down
			}
		}
		if least == i {
			return e, true
		}
		a.heap[i], a.heap[least] = a.heap[least], a.heap[i]
		i = least
	}
}

// timer is an alarm that is set repeatedly. Setting it later keeps the earlier alarm: its
// owner then finds nothing to do and sets it again.
type timer struct {
	set  bool
	at   time.Duration
	gen  uint64
	ring func()
}

// alarm makes ring run at true time at, or earlier.
func (w *World) alarm(t *timer, at time.Duration, ring func()) {
	at = max(at, w.now)
	if t.set && t.at <= at {
		return
	}
	t.set, t.at, t.ring = true, at, ring
	t.plan(w, at)
}

// plan makes the alarm ring at a moment, and cancels an earlier plan.
func (t *timer) plan(w *World, at time.Duration) {
	t.gen++
	gen := t.gen
	w.agenda.add(at, func() {
		if t.gen == gen {
			t.set = false
			t.ring()
		}
	})
}

// delay makes an alarm ring d later, because it did not run from the time from on. If known
// is set, a call of alarm takes the delay into account.
func (t *timer) delay(w *World, from, d time.Duration, known bool) {
	if !t.set {
		return
	}
	t.plan(w, max(t.at, from)+d)
	if known {
		t.at += d
	}
}

// drop cancels an alarm.
func (t *timer) drop() {
	t.set = false
	t.gen++
}

// after adds an event.
func (w *World) after(d time.Duration, run func()) { w.agenda.add(w.now+d, run) }
