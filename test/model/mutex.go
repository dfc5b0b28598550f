package model

import "strconv"

// plain returns the moves of a lock without reentry and downgrade.
func plain() []moveKind { return []moveKind{acquire, release, end} }

// Mutex is a lock that is held or free.
func Mutex() Model { return Model{Name: "mutex", start: mutexState(false), split: true} }

// mutexState is whether the mutex is held.
type mutexState bool

func (s mutexState) key() string { return strconv.FormatBool(bool(s)) }

func (s mutexState) after(m move) state {
	switch {
	case !m.only(plain(), Exclusive):
		return nil
	case (m.kind == acquire) != bool(s):
		return mutexState(m.kind == acquire)
	}
	return nil
}

// Owner is a lock that only its holder releases.
func Owner() Model { return Model{Name: "owner", start: ownerState(0), split: true} }

// ownerState is the hold that has the lock, or 0.
type ownerState int

func (s ownerState) key() string { return strconv.Itoa(int(s)) }

func (s ownerState) after(m move) state {
	switch {
	case !m.only(plain(), Exclusive):
		return nil
	case m.kind == acquire && s == 0:
		return ownerState(m.hold)
	case m.kind != acquire && int(s) == m.hold:
		return ownerState(0)
	}
	return nil
}
