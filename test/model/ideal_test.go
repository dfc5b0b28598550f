package model

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// kindCase is a kind of lock for the generator of histories.
type kindCase struct {
	name      string
	model     Model
	claims    func(t *rapid.T) []Claim
	again     bool // may be entered again
	downgrade bool // may be downgraded
}

func kindCases() []kindCase {
	one := func(modes ...Mode) func(*rapid.T) []Claim {
		return func(t *rapid.T) []Claim {
			return []Claim{{Path: "/x", Mode: rapid.SampledFrom(modes).Draw(t, "mode")}}
		}
	}
	permits := func(t *rapid.T) []Claim {
		return []Claim{{Path: "/x", Mode: Permit, Permits: rapid.IntRange(1, 3).Draw(t, "permits"), Of: 3}}
	}
	several := func(t *rapid.T) []Claim {
		var claims []Claim
		for _, path := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"/x", "/y", "/z"}), 1, 3, rapid.ID).Draw(t, "paths") {
			c := Claim{Path: path, Mode: rapid.SampledFrom([]Mode{Exclusive, Shared}).Draw(t, "mode")}
			if path == "/z" {
				c = Claim{Path: path, Mode: Permit, Permits: rapid.IntRange(1, 2).Draw(t, "permits"), Of: 2}
			}
			claims = append(claims, c)
		}
		return claims
	}
	return []kindCase{
		{"mutex", Mutex(), one(Exclusive), false, false},
		{"owner", Owner(), one(Exclusive), false, false},
		{"fenced", Fenced(), one(Exclusive), false, false},
		{"re-entrant fenced", ReentrantFenced(), one(Exclusive), true, false},
		{"read-write", ReadWrite(), one(Exclusive, Shared), true, true},
		{"semaphore", Semaphore(3), permits, false, false},
		{"multi", Multi(), several, true, true},
	}
}

// lock is an ideal lock of any kind. It compares each claim with those of all holders, and
// shares no code with the models.
type lock struct {
	t       *rapid.T
	kind    kindCase
	history *History
	now     int64
	holds   map[int]*idealHold
	token   int64
	ids     int
	// order numbers the grants of exclusive claims.
	grants []int
}

// idealHold is a hold of the ideal lock.
type idealHold struct {
	id, outer  int
	claims     []Claim
	token      int64
	downgraded bool
}

// ideal draws a history of an ideal lock.
func ideal(t *rapid.T) *lock { return idealOf(t, rapid.SampledFrom(kindCases()).Draw(t, "kind")) }

func idealOf(t *rapid.T, kind kindCase) *lock {
	l := &lock{t: t, kind: kind, history: &History{}, holds: map[int]*idealHold{}}
	for range rapid.IntRange(1, 30).Draw(t, "steps") {
		l.step()
	}
	for _, id := range slices.Sorted(maps.Keys(l.holds)) {
		l.release(l.holds[id])
	}
	return l
}

func (l *lock) add(e Event) {
	l.now += int64(rapid.IntRange(1, 5).Draw(l.t, "pass"))
	e.At = l.now
	if e.Op != Expire {
		e.Client = fmt.Sprintf("c%d", e.ID)
	}
	l.history.Events = append(l.history.Events, e)
}

// step does one thing: acquire, most often.
func (l *lock) step() {
	held := slices.Sorted(maps.Keys(l.holds))
	what := rapid.IntRange(0, 9).Draw(l.t, "what")
	if len(held) == 0 || what < 4 {
		l.acquire()
		return
	}
	h := l.holds[rapid.SampledFrom(held).Draw(l.t, "hold")]
	switch {
	case what == 4:
		l.lose(h)
	case what == 5:
		l.expire(h)
	case what == 6 && l.kind.again:
		l.again(h)
	case what == 7 && l.kind.downgrade && h.outer == h.id && len(h.claims) == 1 && h.claims[0].Mode == Exclusive && !h.downgraded:
		l.downgrade(h)
	default:
		l.release(h)
	}
}

// free reports whether no holder conflicts with the claims.
func (l *lock) free(claims []Claim) bool {
	for _, c := range claims {
		left := c.Of - c.Permits
		for _, h := range l.holds {
			for _, o := range h.claims {
				if o.Path != c.Path {
					continue
				}
				if left -= o.Permits; c.Mode == Exclusive || o.Mode != c.Mode || left < 0 {
					return false
				}
			}
		}
	}
	return true
}

func (l *lock) acquire() {
	l.ids++
	claims := l.kind.claims(l.t)
	try := rapid.Bool().Draw(l.t, "try")
	l.add(Event{Op: Acquire, Kind: Invoke, ID: l.ids, Claims: claims, Try: try})
	if !l.free(claims) {
		l.add(Event{Op: Acquire, Kind: Fail, ID: l.ids, Locked: try, Err: "taken"})
		return
	}
	if rapid.IntRange(0, 9).Draw(l.t, "unknown") == 0 {
		l.add(Event{Op: Acquire, Kind: Info, ID: l.ids, Err: "no reply"})
		return
	}
	l.token += int64(rapid.IntRange(1, 3).Draw(l.t, "zxids"))
	l.holds[l.ids] = &idealHold{id: l.ids, outer: l.ids, claims: claims, token: l.token}
	l.grant(l.holds[l.ids])
	l.grants = append(l.grants, l.ids)
}

func (l *lock) grant(h *idealHold) {
	l.add(Event{Op: Acquire, Kind: OK, ID: h.id, Token: h.token, Session: int64(h.outer), Until: l.now + 3})
}

func (l *lock) again(h *idealHold) {
	l.ids++
	l.add(Event{Op: Acquire, Kind: Invoke, ID: l.ids, Claims: h.claims, Outer: h.id})
	l.holds[l.ids] = &idealHold{id: l.ids, outer: h.outer, claims: h.claims, token: h.token, downgraded: true}
	l.grant(l.holds[l.ids])
}

func (l *lock) downgrade(h *idealHold) {
	if len(l.levels(h)) > 1 {
		return
	}
	l.add(Event{Op: Downgrade, Kind: Invoke, ID: h.id})
	l.add(Event{Op: Downgrade, Kind: rapid.SampledFrom([]Kind{OK, Info}).Draw(l.t, "downgraded"), ID: h.id})
	// The outcome is unknown if it is Info. The ideal lock continues as after OK.
	h.claims = slices.Clone(h.claims)
	h.claims[0].Mode, h.downgraded = Shared, true
}

// levels returns all levels of a hold that was entered several times.
func (l *lock) levels(h *idealHold) []*idealHold {
	var all []*idealHold
	for _, id := range slices.Sorted(maps.Keys(l.holds)) {
		if l.holds[id].outer == h.outer {
			all = append(all, l.holds[id])
		}
	}
	return all
}

func (l *lock) release(h *idealHold) {
	l.add(Event{Op: Release, Kind: Invoke, ID: h.id})
	kind := OK
	if len(l.levels(h)) == 1 && rapid.IntRange(0, 4).Draw(l.t, "unconfirmed") == 0 {
		kind = Info
	}
	delete(l.holds, h.id)
	l.add(Event{Op: Release, Kind: kind, ID: h.id})
}

// lose ends a hold after its deadline. The hold reports the loss.
func (l *lock) lose(h *idealHold) {
	l.now += 3
	for _, o := range l.levels(h) {
		delete(l.holds, o.id)
		if rapid.Bool().Draw(l.t, "by release") {
			l.add(Event{Op: Release, Kind: Invoke, ID: o.id})
			l.add(Event{Op: Release, Kind: Fail, ID: o.id})
		} else {
			l.add(Event{Op: Observe, Kind: Fail, ID: o.id})
		}
	}
}

// expire makes an operator end the session of a hold, which reports its loss afterwards.
func (l *lock) expire(h *idealHold) {
	l.ids++
	id := l.ids
	l.add(Event{Op: Expire, Kind: Invoke, ID: id, Session: int64(h.outer)})
	levels := l.levels(h)
	for _, o := range levels {
		delete(l.holds, o.id)
	}
	if rapid.Bool().Draw(l.t, "granted meanwhile") {
		l.acquire()
	}
	l.add(Event{Op: Expire, Kind: OK, ID: id, Session: int64(h.outer)})
	for _, o := range levels {
		l.add(Event{Op: Observe, Kind: Fail, ID: o.id})
	}
}

// TestIdealLockHasNoViolations checks random histories of ideal locks of each kind.
func TestIdealLockHasNoViolations(t *testing.T) {
	for _, kind := range kindCases() {
		t.Run(kind.name, rapid.MakeCheck(func(t *rapid.T) {
			h := idealOf(t, kind).history
			if r := Check(h, Rules{Model: kind.model, Linger: 1000}); len(r.Violations) > 0 {
				t.Fatalf("%v\n%v", r.Violations, h.Events)
			}
		}))
	}
}
