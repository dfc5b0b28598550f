package model

import "fmt"

// Fenced is a lock that only its holder releases, and whose tokens grow with each grant.
func Fenced() Model { return Model{Name: "fenced", start: fencedState{}, split: true} }

// ReentrantFenced is a fenced lock that its holder may enter again, with the same token.
// The hold ends when the holder has released it once for each time it entered.
func ReentrantFenced() Model {
	return Model{Name: "re-entrant fenced", start: fencedState{reentrant: true}, split: true}
}

// HandedOff is a fenced lock that a hold may hand to the next hold, with the same token.
func HandedOff() Model {
	return Model{Name: "handed off", start: fencedState{handedOff: true}, split: true, handedOff: true}
}

// fencedState is the hold that has the lock, how often it was entered, and the last token.
type fencedState struct {
	reentrant    bool
	handedOff    bool
	hold, levels int
	token        int64
}

func (s fencedState) key() string { return fmt.Sprintf("%d*%d %#x", s.hold, s.levels, s.token) }

func (s fencedState) after(m move) state {
	kinds := plain()
	if s.reentrant {
		kinds = append(kinds, reenter)
	}
	if !m.only(kinds, Exclusive, Shared) || m.kind == acquire && m.claims[0].Mode != Exclusive {
		return nil
	}
	mine := s.levels > 0 && s.hold == m.hold
	switch {
	case m.kind == acquire && s.levels == 0 && (m.token > s.token || s.handedOff && m.token == s.token):
		s.hold, s.levels, s.token = m.hold, 1, m.token
	case m.kind == reenter && mine && m.token == s.token:
		s.levels++
	case m.kind == release && mine:
		s.levels--
	case m.kind == end && mine:
		s.levels = 0
	case m.kind != acquire && !mine && m.uncertain:
		return s
	default:
		return nil
	}
	if s.levels == 0 {
		s.hold = 0
	}
	return s
}
