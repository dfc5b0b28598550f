package model

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A mutation inserts one error into a valid history. It returns nil if it does not apply
// to the history.
type mutation struct {
	name   string
	mutate func(t *rapid.T, l *lock) *History
}

// certain returns the attempts of an ideal history whose holds certainly last from the
// grant to the release: only a confirmed release ended them.
func certain(h *History) []*attempt {
	g := collect(h.Events)
	uncertain := map[int]bool{}
	for _, e := range h.Events {
		uncertain[int(e.Session)] = uncertain[int(e.Session)] || e.Op == Expire // the ideal lock's sessions are its holds
	}
	for _, a := range g.attempts {
		uncertain[a.outer] = uncertain[a.outer] || a.uncertain() || a.release.outcome != OK || a.down.invoked != never
	}
	return slices.DeleteFunc(g.attempts, func(a *attempt) bool { return uncertain[a.outer] })
}

// excludes reports whether two attempts cannot hold at the same time.
func excludes(a, b *attempt) bool {
	for _, c := range a.claims {
		for _, d := range b.claims {
			if c.Path == d.Path && (exclude(c, d) || c.Permits+d.Permits > c.Of) && c.Mode != Shared {
				return true
			}
		}
	}
	return false
}

// fencedBy reports whether a has an exclusive claim on a path of b.
func fencedBy(a, b *attempt) bool {
	for _, c := range a.claims {
		for _, d := range b.claims {
			if c.Path == d.Path && c.Mode == Exclusive {
				return true
			}
		}
	}
	return false
}

// pick draws one attempt, or returns nil if there are none.
func pick(t *rapid.T, all []*attempt) *attempt {
	if len(all) == 0 {
		return nil
	}
	return rapid.SampledFrom(all).Draw(t, "victim")
}

// insert inserts events, a nanosecond apart, after the event at the time after. It first
// multiplies all times by 100 to make space.
func insert(h *History, after int64, events ...Event) *History {
	m := h.Clone()
	for i := range m.Events {
		m.Events[i].At *= 100
		m.Events[i].Until *= 100
	}
	i := slices.IndexFunc(m.Events, func(e Event) bool { return e.At == after*100 })
	for j := range events {
		events[j].At = after*100 + int64(j) + 1
	}
	m.Events = slices.Insert(m.Events, i+1, events...)
	return m
}

// insertHold inserts an acquire and a release with the claims of a by another client.
func insertHold(a *attempt, after int64, h *History, token int64) *History {
	const id = 1000
	return insert(h, after,
		Event{Kind: Invoke, Op: Acquire, ID: id, Client: "intruder", Claims: a.claims},
		Event{Kind: OK, Op: Acquire, ID: id, Client: "intruder", Token: token, Session: id},
		Event{Kind: Invoke, Op: Release, ID: id, Client: "intruder"},
		Event{Kind: OK, Op: Release, ID: id, Client: "intruder"})
}

func mutations() []mutation {
	return []mutation{
		{"granted next to a holder", func(t *rapid.T, l *lock) *History {
			a := pick(t, slices.DeleteFunc(certain(l.history), func(a *attempt) bool { return !excludes(a, a) }))
			if a == nil {
				return nil
			}
			return insertHold(a, a.returned, l.history, a.token+1)
		}},
		{"a release without effect", func(t *rapid.T, l *lock) *History {
			// Move a release after the next conflicting grant.
			all := certain(l.history)
			for _, a := range all {
				for _, o := range all {
					if o.outer != a.outer && excludes(a, o) && o.invoked > a.release.returned {
						return delayRelease(l.history, a.id, o.returned)
					}
				}
			}
			return nil
		}},
		{"a token goes back", func(t *rapid.T, l *lock) *History {
			var first, second *attempt
			for _, a := range certain(l.history) {
				for _, b := range certain(l.history) {
					if a.outer == a.id && b.outer == b.id && a.release.returned < b.invoked && (fencedBy(a, b) || fencedBy(b, a)) {
						first, second = a, b
					}
				}
			}
			if second == nil {
				return nil
			}
			m := l.history.Clone()
			for i := range m.Events {
				if e := &m.Events[i]; e.Kind == OK && e.Op == Acquire && e.Token == second.token {
					e.Token = first.token - 1
					if e.Token == 0 {
						e.Token = first.token
					}
				}
			}
			return m
		}},
		{"a second token inside", func(t *rapid.T, l *lock) *History {
			inner := slices.DeleteFunc(certain(l.history), func(a *attempt) bool { return a.id == a.outer })
			a := pick(t, inner)
			if a == nil {
				return nil
			}
			m := l.history.Clone()
			for i := range m.Events {
				if e := &m.Events[i]; e.Kind == OK && e.Op == Acquire && e.ID == a.id {
					e.Token++
				}
			}
			return m
		}},
		{"a loss after the successor's grant", func(t *rapid.T, l *lock) *History {
			// Move the deadline and the loss of a hold after the next conflicting grant.
			m := l.history.Clone()
			g := collect(m.Events)
			for _, a := range g.attempts {
				alone := !slices.ContainsFunc(g.attempts, func(o *attempt) bool { return o != a && o.outer == a.outer })
				if a.lost == never || a.limit != never || !alone || a.down.invoked != never {
					continue
				}
				for _, o := range g.attempts {
					if o.granted() && excludes(a, o) && o.returned > a.lost && o.end() > o.returned {
						return delayLoss(m, a.id, o.returned)
					}
				}
			}
			return nil
		}},
	}
}

// delayRelease moves the release of an attempt after the event at a time.
func delayRelease(h *History, id int, after int64) *History {
	var moved []Event
	m := h.Clone()
	m.Events = slices.DeleteFunc(m.Events, func(e Event) bool {
		if e.ID == id && e.Op == Release {
			moved = append(moved, e)
			return true
		}
		return false
	})
	return insert(m, after, moved...)
}

// delayLoss moves the deadline and the loss of an attempt after the event at a time.
func delayLoss(h *History, id int, after int64) *History {
	var moved []Event
	m := h.Clone()
	m.Events = slices.DeleteFunc(m.Events, func(e Event) bool {
		if e.ID == id && (e.Op == Observe || e.Op == Release) {
			moved = append(moved, e)
			return true
		}
		return false
	})
	for i := range m.Events {
		if e := &m.Events[i]; e.ID == id && e.Op == Acquire && e.Kind == OK {
			e.Until = after + 1
		}
	}
	return insert(m, after, moved...)
}

// TestMutatedHistoryIsRefuted checks that the model and the sweep refute each mutated
// history, and that each mutation applies often enough.
func TestMutatedHistoryIsRefuted(t *testing.T) {
	for _, kind := range kindCases() {
		for _, m := range mutations() {
			planted := 0
			ok := t.Run(kind.name+"/"+m.name, rapid.MakeCheck(func(t *rapid.T) {
				l := idealOf(t, kind)
				h := m.mutate(t, l)
				if h == nil {
					return
				}
				planted++
				g := collect(h.Events)
				if len(g.problems) > 0 {
					t.Fatalf("the mutant is out of turn: %v\n%v", g.problems, h.Events)
				}
				if problems, _ := sweep(g.attempts, false); len(problems) == 0 {
					t.Fatalf("the sweep finds nothing in\n%v", h.Events)
				}
				r := &Report{}
				if r.order(g, Rules{Model: kind.model}); len(r.Violations) == 0 && !modelAccepts(kind, m) {
					t.Fatalf("an order explains\n%v", h.Events)
				}
			}))
			if ok && planted < 3 && applies(kind, m) {
				t.Errorf("%s/%s: planted %d times only", kind.name, m.name, planted)
			}
		}
	}
}

// modelAccepts reports whether the model of the kind does not check the rule.
func modelAccepts(kind kindCase, m mutation) bool {
	return m.name == "a token goes back" && (kind.name == "mutex" || kind.name == "owner")
}

// applies reports whether the mutation can apply to the kind.
func applies(kind kindCase, m mutation) bool {
	switch m.name {
	case "a token goes back":
		return kind.name != "semaphore"
	case "a second token inside":
		return kind.again
	}
	return true
}
