package tree

// expiryHeap has the sessions by the time at which they must be looked at, the
// earliest first and by id where times are equal. A session's entry may be
// earlier than its deadline (see Tree.touch), never later.
type expiryHeap struct {
	list []*session
}

// less orders by time and then by id: sessions that end at the same moment end in
// the same order in every run.
func (h *expiryHeap) less(i, j int) bool {
	a, b := h.list[i], h.list[j]
	return a.queued < b.queued || a.queued == b.queued && a.id < b.id
}

func (h *expiryHeap) swap(i, j int) {
	h.list[i], h.list[j] = h.list[j], h.list[i]
	h.list[i].index, h.list[j].index = int32(i), int32(j)
}

// push adds s at s.queued. A session is in the heap once at most: its index
// tells.
func (h *expiryHeap) push(s *session) {
	s.index = int32(len(h.list)) // no memory has room for more
	h.list = append(h.list, s)
	h.fix(int(s.index))
}

// fix restores the order after the entry at i changed, in either direction: up
// towards the root first, and if it did not move, down.
func (h *expiryHeap) fix(i int) {
	for i > 0 && h.less(i, (i-1)/2) {
		h.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
	for {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(h.list); c++ {
			if h.less(c, least) {
				least = c
			}
		}
		if least == i {
			return
		}
		h.swap(i, least)
		i = least
	}
}

// remove takes the entry at i out. The last entry takes its place.
func (h *expiryHeap) remove(i int) {
	end := len(h.list) - 1
	h.swap(i, end)
	h.list[end].index = -1
	h.list[end] = nil
	h.list = h.list[:end]
	if i < end {
		h.fix(i)
	}
}

// first returns the earliest entry, nil if there is none.
func (h *expiryHeap) first() *session {
	if len(h.list) == 0 {
		return nil
	}
	return h.list[0]
}
