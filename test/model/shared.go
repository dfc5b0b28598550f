package model

// ReadWrite is a lock that one writer or any number of readers hold. A reader's token is
// larger than that of every earlier writer. A writer's token is larger than all earlier
// tokens. A writer may downgrade its hold. A holder may enter again.
func ReadWrite() Model {
	return Model{Name: "read-write", start: pathModel{modes: []Mode{Exclusive, Shared},
		kinds: []moveKind{acquire, reenter, release, end, downgrade}}, split: true}
}

// Semaphore is a semaphore with n permits. Each holder has one or more of them.
func Semaphore(n int) Model {
	return Model{Name: "semaphore", start: pathModel{modes: []Mode{Permit}, kinds: plain(), of: n}, split: true}
}

// pathModel is the state of one path, and the moves that are permitted.
type pathModel struct {
	pathState
	modes []Mode
	kinds []moveKind
	of    int // the number of permits that each claim must name; 0 without permits
}

func (s pathModel) after(m move) state {
	if !m.only(s.kinds, s.modes...) || m.claims[0].Of != s.of {
		return nil
	}
	next, ok := s.pathState.after(m, m.claims[0])
	if !ok {
		return nil
	}
	s.pathState = next
	return s
}
