package history

import (
	"fmt"
	"slices"
	"strings"
)

// holder is who holds a path.
type holder struct {
	hold    int
	levels  int // how often it was entered
	mode    Mode
	permits int
	token   int64
}

// place is one path: its holders in the order of their grants, and the highest
// tokens that it has seen. It does not change: each method returns another one,
// and whether the move can be made.
type place struct {
	holders   []holder
	exclusive int64 // of an exclusive holder
	any       int64 // of an exclusive or a shared one
}

// key tells places apart.
func (p place) key() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%#x,%#x", p.exclusive, p.any)
	for _, h := range p.holders {
		fmt.Fprintf(&b, " %d*%d:%s:%d", h.hold, h.levels, h.mode, h.permits)
	}
	return b.String()
}

// take lets a hold begin, if nobody who holds is in its way.
func (p place) take(hold int, c Claim, token int64) (place, bool) {
	used := c.Permits
	for _, h := range p.holders {
		if h.mode != c.Mode || c.Mode == Exclusive {
			return p, false
		}
		used += h.permits
	}
	switch c.Mode {
	case Exclusive:
		// Above whatever anybody before it may have written with.
		if token <= p.any {
			return p, false
		}
		p.exclusive, p.any = token, token
	case Shared:
		// Readers are not ordered among each other.
		if token <= p.exclusive {
			return p, false
		}
		p.any = max(p.any, token)
	case Permit:
		// Permits are not ordered at all.
		// Each claim brings its own idea of how many there are, and is held to it.
		if used > c.Of {
			return p, false
		}
	default:
		return p, false
	}
	p.holders = append(slices.Clip(p.holders), holder{hold: hold, levels: 1, mode: c.Mode, permits: c.Permits, token: token})
	// The order of lawful companions says nothing: equal states look equal.
	p.holders = slices.Clone(p.holders)
	slices.SortFunc(p.holders, func(a, b holder) int { return a.hold - b.hold })
	return p, true
}

// with changes the entry of a hold, which is taken out when it has no levels
// left. It reports whether the hold was there.
func (p place) with(hold int, change func(*holder) bool) (place, bool) {
	i := slices.IndexFunc(p.holders, func(h holder) bool { return h.hold == hold })
	if i < 0 {
		return p, false
	}
	p.holders = slices.Clone(p.holders)
	if !change(&p.holders[i]) {
		return p, false
	}
	if p.holders[i].levels == 0 {
		p.holders = slices.Delete(p.holders, i, i+1)
	}
	return p, true
}

// after is the place after one claim of a move.
func (p place) after(m move, c Claim) (place, bool) {
	var ok bool
	next := p
	switch m.kind {
	case take:
		return p.take(m.hold, c, m.token)
	case reenter:
		next, ok = p.with(m.hold, func(h *holder) bool {
			h.levels++
			return h.token == m.token
		})
	case give:
		next, ok = p.with(m.hold, func(h *holder) bool {
			h.levels--
			return true
		})
	case end:
		next, ok = p.with(m.hold, func(h *holder) bool {
			h.levels = 0
			return true
		})
	case lower:
		next, ok = p.with(m.hold, func(h *holder) bool {
			was := h.mode
			h.mode = Shared
			return was == Exclusive && h.token == m.token
		})
	}
	// What may have ended by itself may have been over when this was done: nothing
	// comes of it then. While it is there, it has to be as it says.
	if m.loose && !slices.ContainsFunc(p.holders, func(h holder) bool { return h.hold == m.hold }) {
		return p, true
	}
	return next, ok
}
