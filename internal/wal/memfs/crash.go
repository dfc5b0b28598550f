package memfs

import (
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
)

// ErrCrashed is what files and locks of before a crash or restart give.
var ErrCrashed = errors.New("memfs: the process that opened this is gone")

// Restart is the end of the process and the begin of another: open files
// and locks are gone, everything written stays, durable or not.
func (m *FS) Restart() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.restart()
}

// restart ends the process. Called with mu held.
func (m *FS) restart() {
	m.epoch++
	clear(m.locks)
}

// Crash is a loss of power, and a restart. Of what was not synced, chance
// decides what is there: each change of names that rests on no lost one,
// the length of each file, and each block; what got lost within a file that
// grew reads as zeros, as noise, or as an older block of the same file.
func (m *FS) Crash() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.restart()
	keep := m.chance()
	lost := make(map[string]bool)
	for _, c := range m.changes {
		if lost[c.from] || lost[c.to] || !keep() {
			lost[c.from], lost[c.to] = true, true
			delete(lost, "") // of changes with one name
			continue
		}
		c.apply(m.durable)
	}
	m.changes = nil
	m.names = maps.Clone(m.durable)
	// Sorted: the order of a map would spend the chance differently each time.
	for _, name := range slices.Sorted(maps.Keys(m.names)) {
		m.crashFile(m.names[name])
	}
}

// chance makes one crash's way of losing things: all, nothing, or some.
func (m *FS) chance() func() bool {
	odds := [...]int{0, 4, 1, 2, 3}[m.rand.IntN(5)]
	return func() bool { return m.rand.IntN(4) < odds }
}

// crashFile leaves of a file what the disk has.
func (m *FS) crashFile(n *node) {
	keep := m.chance()
	old := len(n.durable)
	size := old
	if len(n.data) != old && keep() {
		size = len(n.data)
		if size > old && m.rand.IntN(2) == 0 {
			size = old + m.rand.IntN(size-old+1)
		}
	}
	// Before it changes: what a block held earlier is what stale means.
	stale := slices.Clone(n.durable)
	n.setDurableSize(size)
	for _, b := range slices.Sorted(maps.Keys(n.dirty)) {
		if keep() {
			n.flush(b)
		} else if b*blockSize >= old {
			m.junk(n, b, stale)
		}
	}
	n.data = slices.Clone(n.durable)
	clear(n.dirty)
	// What the crash cut off takes no space any more.
	_, end := blocks(0, size)
	maps.DeleteFunc(n.alloc, func(b int, _ bool) bool { return b >= end })
}

// junk fills a block that the file system gave the file but never wrote.
func (m *FS) junk(n *node, block int, stale []byte) {
	from := block * blockSize
	if from >= len(n.durable) {
		return
	}
	b := n.durable[from:min(from+blockSize, len(n.durable))]
	switch m.rand.IntN(4) {
	case 0:
		for i := range b {
			b[i] = byte(m.rand.Uint32())
		}
	case 1:
		if count := len(stale) / blockSize; count > 0 {
			copy(b, stale[m.rand.IntN(count)*blockSize:])
		}
	}
}

// Clone makes a copy with a random source of its own. Files open in m stay
// m's; the copy has none open and nothing locked, and no fault.
func (m *FS) Clone(r *rand.Rand) *FS {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := New(r)
	c.dirs = maps.Clone(m.dirs)
	c.limit = m.limit
	// A file may be under a name, under another one on disk, and in a change:
	// it stays one file in the copy.
	copies := make(map[*node]*node)
	copyOf := func(n *node) *node {
		if n == nil {
			return nil
		}
		if copies[n] == nil {
			copies[n] = n.clone()
		}
		return copies[n]
	}
	for name, n := range m.names {
		c.names[name] = copyOf(n)
	}
	for name, n := range m.durable {
		c.durable[name] = copyOf(n)
	}
	for _, ch := range m.changes {
		ch.node = copyOf(ch.node)
		c.changes = append(c.changes, ch)
	}
	return c
}
