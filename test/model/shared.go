package model

// ReadWrite is a lock that one writer or any number of readers hold. The token of a
// holder is larger than that of every earlier writer, and a writer's token is larger than
// all earlier ones. A writer may become a reader. A holder may enter again.
func ReadWrite() Model {
	return Model{Name: "read-write", start: placeState{modes: []Mode{Exclusive, Shared},
		kinds: []moveKind{take, reenter, give, end, lower}}, split: true}
}

// Semaphore is n permits, of which each holder has some.
func Semaphore(n int) Model {
	return Model{Name: "semaphore", start: placeState{modes: []Mode{Permit}, kinds: plain(), of: n}, split: true}
}

// placeState is the state of one path, and the moves that are permitted.
type placeState struct {
	place
	modes []Mode
	kinds []moveKind
	of    int // how many permits every claim must know of; 0 if there are none
}

func (s placeState) after(m move) state {
	if !m.only(s.kinds, s.modes...) || m.claims[0].Of != s.of {
		return nil
	}
	next, ok := s.place.after(m, m.claims[0])
	if !ok {
		return nil
	}
	s.place = next
	return s
}
