package zkui

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/zklock/zklock/inspect"
)

// A troubleKind is a reason why a lock needs attention.
type troubleKind string

const (
	troubleDeadlock troubleKind = "deadlock"
	troubleJeopardy troubleKind = "jeopardy"
	troubleLongHold troubleKind = "long-hold"
	troubleQueue    troubleKind = "growing-queue"
	troubleRevoked  troubleKind = "release-requested"
	troubleWarning  troubleKind = "warning" // see inspect.Lock.Warnings
)

// troubleOrder has the kinds, the worst first. The page has the same order.
var troubleOrder = []troubleKind{troubleDeadlock, troubleJeopardy, troubleLongHold, troubleQueue, troubleRevoked, troubleWarning}

// trouble is the JSON form of one reason. The text does not change while time passes.
type trouble struct {
	Kind troubleKind `json:"kind"`
	Text string      `json:"text"`
}

// rankOf returns a number that is smaller for worse trouble.
func rankOf(all []trouble) int {
	if len(all) == 0 {
		return len(troubleOrder)
	}
	return slices.Index(troubleOrder, all[0].Kind) // troubles are sorted
}

// troubles are those of all locks at one time. They do not change.
type troubles struct {
	locks     map[string][]trouble // by path, the worst of each lock first
	deadlocks [][]step
}

// Thresholds of what counts as trouble.
const (
	troubleInterval = time.Second
	// deadlockSnapshots is the number of snapshots, troubleInterval apart, that show a cycle
	// before it counts as a deadlock. A single listing reads locks one after another and may
	// show a cycle that never existed.
	deadlockSnapshots = 3
	// A hold is long if it lasts longHoldFactor times as long as 99 of 100 earlier holds, and
	// at least minLongHold. That takes minPastHolds.
	longHoldFactor = 2
	minLongHold    = 30 * time.Second
	minPastHolds   = 10
	// A queue grows if it is longer at each of queueSamples times, queueInterval apart, and
	// has at least minGrownQueue waiters.
	queueInterval = 30 * time.Second
	queueSamples  = 3
	minGrownQueue = 10
)

// A finder finds troubles. One goroutine uses it.
type finder struct {
	snapshots []*inspect.Snapshot // the last ones, the older first
	samples   []map[string]int    // how many waited, by path, queueInterval apart
	sampled   time.Time
	growing   map[string]string    // by path, what is said of the queue
	compared  [2]*inspect.Snapshot // those that cycles is from
	cycles    [][]step
}

// keepTroubles keeps the troubles current until the handler ends.
func (h *Handler) keepTroubles() {
	tick := time.NewTicker(troubleInterval)
	defer tick.Stop()
	var f finder
	for {
		select {
		case <-h.closed:
			return
		case <-tick.C:
		}
		h.setTroubles(f.find(h.watcher.Snapshot(), h.jeopardized(), time.Now()))
	}
}

// setTroubles makes the troubles known if they differ from those before.
func (h *Handler) setTroubles(now *troubles) {
	h.mu.Lock()
	old := h.troubles
	if len(changedTroubles(old, now)) == 0 && slices.EqualFunc(old.deadlocks, now.deadlocks, slices.Equal) {
		h.mu.Unlock()
		return
	}
	h.troubles = now
	changed := h.troublesChanged
	h.troublesChanged = make(chan struct{})
	h.mu.Unlock()
	close(changed)
}

// currentTroubles returns the troubles, and a channel that is closed when there are others.
func (h *Handler) currentTroubles() (*troubles, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.troubles, h.troublesChanged
}

// jeopardized returns the sessions of the followed clients whose heartbeats are overdue.
func (h *Handler) jeopardized() map[int64]bool {
	h.mu.Lock()
	own := h.clients
	h.mu.Unlock()
	found := map[int64]bool{}
	for _, c := range own {
		if state := c.Health(); state.Session != 0 && inspect.InJeopardy(state.Heartbeat, state.Timeout) {
			found[state.Session] = true
		}
	}
	return found
}

// find returns the troubles of a snapshot.
func (f *finder) find(s *inspect.Snapshot, jeopardy map[int64]bool, now time.Time) *troubles {
	f.snapshots = append(f.snapshots[max(0, len(f.snapshots)-deadlockSnapshots+1):], s)
	if pair := [2]*inspect.Snapshot{f.snapshots[0], s}; len(f.snapshots) == deadlockSnapshots && pair != f.compared {
		f.cycles, f.compared = cyclesOf(pair[0], pair[1]), pair
	}
	if now.Sub(f.sampled) >= queueInterval {
		f.sampleQueues(s)
		f.sampled = now
	}
	found := &troubles{locks: map[string][]trouble{}, deadlocks: f.cycles}
	add := func(path string, kind troubleKind, text string) {
		found.locks[path] = append(found.locks[path], trouble{kind, text})
	}
	for _, cycle := range f.cycles {
		for _, step := range cycle {
			add(step.Waits, troubleDeadlock, fmt.Sprintf("deadlock of %d sessions", len(cycle)))
		}
	}
	for _, l := range s.Locks {
		if holdsLong(l, s.Status.Started, now) {
			add(l.Path, troubleLongHold, "held far longer than usual: 99 of 100 holds end within "+inSeconds(l.PastHolds.P99))
		}
		if text := f.growing[l.Path]; text != "" {
			add(l.Path, troubleQueue, text)
		}
		if anyHolder(l, func(e inspect.Entry) bool { return jeopardy[e.Session] }) {
			add(l.Path, troubleJeopardy, "the holder's session is in jeopardy: its heartbeats are not answered")
		}
		if text := requestText(l); text != "" {
			add(l.Path, troubleRevoked, text)
		}
		for _, w := range l.Warnings {
			add(l.Path, troubleWarning, w)
		}
	}
	for _, all := range found.locks {
		slices.SortStableFunc(all, func(a, b trouble) int { return cmp.Compare(rankOf([]trouble{a}), rankOf([]trouble{b})) })
	}
	return found
}

// anyHolder reports whether the condition is true for a holder of the lock.
func anyHolder(l *inspect.Lock, is func(inspect.Entry) bool) bool {
	for _, e := range l.Entries {
		if !e.Holder {
			return false // holders come first
		}
		if is(e) {
			return true
		}
	}
	return false
}

// requestText names the client that requested the release of the lock from its first such
// holder, and the reason; it is empty without a request. Any client can write both.
func requestText(l *inspect.Lock) string {
	if !anyHolder(l, func(e inspect.Entry) bool { return e.Revoked }) {
		return ""
	}
	asked := slices.DeleteFunc(inspect.FirstPerAcquire(l.Holders()), func(e inspect.Entry) bool { return !e.Revoked })
	text := "release requested"
	if len(asked) > 1 {
		text += fmt.Sprintf(" of %d holders", len(asked))
	}
	if by := inspect.RequesterName(asked[0].Request); by != "" {
		text += " by " + by
	}
	if reason := inspect.RequestReason(asked[0].Request); reason != "" {
		text += " (reason: " + reason + ")"
	}
	return text + ", and still held"
}

// holdsLong reports whether a holder has held the lock far longer than earlier holders. If
// the grant was not seen, it counts from the start of the watcher.
func holdsLong(l *inspect.Lock, started, now time.Time) bool {
	if l.PastHolds.Count < minPastHolds {
		return false
	}
	usual := time.Duration(l.PastHolds.P99 * float64(time.Second))
	return anyHolder(l, func(e inspect.Entry) bool {
		since := started
		if !e.Granted.IsZero() {
			since = e.Granted
		}
		return now.Sub(since) >= max(minLongHold, longHoldFactor*usual)
	})
}

// inSeconds writes a number of seconds, rounded to what a reader needs.
func inSeconds(s float64) string {
	d := time.Duration(s * float64(time.Second))
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// sampleQueues notes the queues that grew between all samples.
func (f *finder) sampleQueues(s *inspect.Snapshot) {
	f.growing = map[string]string{}
	if len(f.samples) == queueSamples {
		for _, l := range s.Locks {
			if n := l.Waiting(); n >= minGrownQueue && f.grew(l.Path, n) {
				f.growing[l.Path] = fmt.Sprintf("the queue grows: %d waiters, %d of them in %v", n, n-f.samples[0][l.Path], queueSamples*queueInterval)
			}
		}
		f.samples = f.samples[1:]
	}
	waiting := map[string]int{}
	for _, l := range s.Locks {
		if n := l.Waiting(); n > 0 {
			waiting[l.Path] = n
		}
	}
	f.samples = append(f.samples, waiting)
}

// grew reports whether the queue was shorter at each sample than at the next.
func (f *finder) grew(path string, n int) bool {
	for _, waiting := range slices.Backward(f.samples) {
		before := waiting[path]
		if before >= n {
			return false
		}
		n = before
	}
	return true
}

// step is the JSON form of one session of a deadlock.
type step struct {
	Session   string `json:"session"`
	Who       string `json:"who"`
	Waits     string `json:"waits"` // for this lock
	Holder    string `json:"holder"`
	HolderWho string `json:"holderWho"`
}

// cyclesOf returns the cycles of sessions that wait for each other in both snapshots.
func cyclesOf(old, now *inspect.Snapshot) [][]step {
	circles := [][]step{}
	for _, d := range inspect.Deadlocks(inspect.Unchanged(old.Locks, now.Locks)) {
		var steps []step
		for i, link := range d.Cycle {
			next := d.Cycle[(i+1)%len(d.Cycle)]
			steps = append(steps, step{
				Session: inspect.FormatSession(link.Session), Who: inspect.OwnerName(link.Waits.Entry), Waits: link.Waits.Path,
				Holder: inspect.FormatSession(next.Session), HolderWho: inspect.OwnerName(next.Holds.Entry),
			})
		}
		circles = append(circles, steps)
	}
	return circles
}

// deadlocksOf returns the deadlocks that a lock is part of.
func (t *troubles) deadlocksOf(path string) [][]step {
	some := [][]step{}
	for _, cycle := range t.deadlocks {
		if slices.ContainsFunc(cycle, func(s step) bool { return s.Waits == path }) {
			some = append(some, cycle)
		}
	}
	return some
}

// lockTroubles are the troubles of one lock; none if it is out of trouble.
type lockTroubles struct {
	Path     string    `json:"path"`
	Troubles []trouble `json:"troubles"`
}

// changedTroubles returns the locks whose troubles are not as they were.
func changedTroubles(old, now *troubles) []lockTroubles {
	changed := []lockTroubles{}
	for path, all := range now.locks {
		if !slices.Equal(old.locks[path], all) {
			changed = append(changed, lockTroubles{path, all})
		}
	}
	for path := range old.locks {
		if now.locks[path] == nil {
			changed = append(changed, lockTroubles{path, []trouble{}})
		}
	}
	return changed
}
