package model

import (
	"fmt"
	"slices"
	"strings"
)

// holder is a holder of a path.
type holder struct {
	hold    int
	levels  int // how often it was entered
	mode    Mode
	permits int
	token   int64
}

// pathState is the state of one path: its holders, and its highest tokens. It is immutable:
// each method returns another state, and whether the move is permitted.
type pathState struct {
	holders   []holder
	exclusive int64 // of an exclusive holder
	any       int64 // of an exclusive or a shared one
}

// key is equal for equal states.
func (p pathState) key() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%#x,%#x", p.exclusive, p.any)
	for _, h := range p.holders {
		fmt.Fprintf(&b, " %d*%d:%s:%d", h.hold, h.levels, h.mode, h.permits)
	}
	return b.String()
}

// acquire begins a hold, unless a holder conflicts with it.
func (p pathState) acquire(hold int, c Claim, token int64) (pathState, bool) {
	used := c.Permits
	for _, h := range p.holders {
		if h.mode != c.Mode || c.Mode == Exclusive {
			return p, false
		}
		used += h.permits
	}
	switch c.Mode {
	case Exclusive:
		// The token must be larger than that of every earlier reader and writer.
		if token <= p.any {
			return p, false
		}
		p.exclusive, p.any = token, token
	case Shared:
		// Readers have no order.
		if token <= p.exclusive {
			return p, false
		}
		p.any = max(p.any, token)
	case Permit:
		// Permits have no order. Each claim names the size of the semaphore.
		if used > c.Of {
			return p, false
		}
	default:
		return p, false
	}
	p.holders = append(slices.Clip(p.holders), holder{hold: hold, levels: 1, mode: c.Mode, permits: c.Permits, token: token})
	// The order of simultaneous holders does not matter.
	p.holders = slices.Clone(p.holders)
	slices.SortFunc(p.holders, func(a, b holder) int { return a.hold - b.hold })
	return p, true
}

// with changes a holder, and removes it if it has no levels left. It reports whether the
// hold exists and the change is permitted.
func (p pathState) with(hold int, change func(*holder) bool) (pathState, bool) {
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

// after returns the state after one claim of a move.
func (p pathState) after(m move, c Claim) (pathState, bool) {
	var ok bool
	next := p
	switch m.kind {
	case acquire:
		return p.acquire(m.hold, c, m.token)
	case reenter:
		next, ok = p.with(m.hold, func(h *holder) bool {
			h.levels++
			return h.token == m.token
		})
	case release:
		next, ok = p.with(m.hold, func(h *holder) bool {
			h.levels--
			return true
		})
	case end:
		next, ok = p.with(m.hold, func(h *holder) bool {
			h.levels = 0
			return true
		})
	case downgrade:
		next, ok = p.with(m.hold, func(h *holder) bool {
			was := h.mode
			h.mode = Shared
			return was == Exclusive && h.token == m.token
		})
	}
	// An uncertain move has no effect if its hold has ended.
	if m.uncertain && !slices.ContainsFunc(p.holders, func(h holder) bool { return h.hold == m.hold }) {
		return p, true
	}
	return next, ok
}
