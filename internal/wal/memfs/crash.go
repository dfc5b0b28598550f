package memfs

import (
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
)

// ErrCrashed is the error of files and locks that were opened before a crash or
// restart.
var ErrCrashed = errors.New("memfs: the process that opened this is gone")

// Restart ends the process and starts another one. Open files and locks are gone.
// Everything written remains, durable or not.
func (m *FS) Restart() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.restart()
}

// restart ends the process. mu must be held.
func (m *FS) restart() {
	m.epoch++
	clear(m.locks)
}

// Crash simulates a power failure and a restart. For data that was not synced, random
// numbers decide what survives: each change of names that depends on no lost change,
// the length of each file, and each block. A lost block in a file that grew reads as
// zeros, as random bytes, or as an older block of the same file.
func (m *FS) Crash() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.restart()
	keep := m.keepOdds()
	lost := make(map[string]bool)
	for _, c := range m.changes {
		if lost[c.from] || lost[c.to] || !keep() {
			lost[c.from], lost[c.to] = true, true
			delete(lost, "") // changes with one name have "" as the other
			continue
		}
		c.apply(m.durable)
	}
	m.changes = nil
	m.names = maps.Clone(m.durable)
	// Sorted, so that the random numbers are used in the same order in each run.
	for _, name := range slices.Sorted(maps.Keys(m.names)) {
		m.crashFile(m.names[name])
	}
}

// keepOdds returns the decision function of one crash, which keeps everything,
// nothing, or a part.
func (m *FS) keepOdds() func() bool {
	odds := [...]int{0, 4, 1, 2, 3}[m.rand.IntN(5)]
	return func() bool { return m.rand.IntN(4) < odds }
}

// crashFile reduces a file to what is on the disk.
func (m *FS) crashFile(n *node) {
	keep := m.keepOdds()
	old := len(n.durable)
	size := old
	if len(n.data) != old && keep() {
		size = len(n.data)
		if size > old && m.rand.IntN(2) == 0 {
			size = old + m.rand.IntN(size-old+1)
		}
	}
	// A copy from before the changes: a stale block has its earlier content.
	stale := slices.Clone(n.durable)
	n.setDurableSize(size)
	for _, b := range slices.Sorted(maps.Keys(n.dirty)) {
		if keep() {
			n.flush(b)
		} else if b*blockSize >= old {
			m.fillUnwritten(n, b, stale)
		}
	}
	n.data = slices.Clone(n.durable)
	clear(n.dirty)
	// Blocks that the crash cut off use no space any more.
	_, end := blocks(0, size)
	maps.DeleteFunc(n.alloc, func(b int, _ bool) bool { return b >= end })
}

// fillUnwritten fills a block that the file system allocated but never wrote.
func (m *FS) fillUnwritten(n *node, block int, stale []byte) {
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

// Clone returns a copy with its own random source. Files that are open in m belong to
// m. The copy has no open files, no locks, and no faults.
func (m *FS) Clone(r *rand.Rand) *FS {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := New(r)
	c.dirs = maps.Clone(m.dirs)
	c.limit = m.limit
	// One file may have a name, another name on disk, and a pending change. It stays
	// one file in the copy.
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
