package model

import "strconv"

// plain returns the moves of a lock that is neither entered again nor downgraded.
func plain() []moveKind { return []moveKind{take, give, end} }

// Mutex is a lock that is held or free.
func Mutex() Model { return Model{Name: "mutex", start: mutexState(false), split: true} }

// mutexState is whether the mutex is held.
type mutexState bool

func (s mutexState) key() string { return strconv.FormatBool(bool(s)) }

func (s mutexState) after(m move) state {
	switch {
	case !m.only(plain(), Exclusive):
		return nil
	case (m.kind == take) != bool(s):
		return mutexState(m.kind == take)
	}
	return nil
}

// Owner is a lock that knows its holder: only the holder releases it.
func Owner() Model { return Model{Name: "owner", start: ownerState(0), split: true} }

// ownerState is the hold that has the lock; 0 while it is free.
type ownerState int

func (s ownerState) key() string { return strconv.Itoa(int(s)) }

func (s ownerState) after(m move) state {
	switch {
	case !m.only(plain(), Exclusive):
		return nil
	case m.kind == take && s == 0:
		return ownerState(m.hold)
	case m.kind != take && int(s) == m.hold:
		return ownerState(0)
	}
	return nil
}
