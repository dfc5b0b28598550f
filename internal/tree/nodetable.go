package tree

import "hash/maphash"

const (
	// tableParts is the number of parts of a nodeTable. Each part grows alone, so that a create
	// does not wait until a million nodes have moved.
	tableParts = 64
	// minSlots is the minimum number of slots of a part that is not empty.
	minSlots = 8
	// spreadSlots is the number of slots from which each part has its own sequence of sizes.
	// The parts have about equally many nodes, so with equal sizes, all would grow at the same
	// time. One growth adds half of the slots, and the sizes are spread over that half.
	spreadSlots = 2 * tableParts
)

// nodeTable finds nodes by path. A map would need 41 bytes per node: the string
// header of the path, a pointer, and free space for growth. This table needs 18,
// because the path is read from the node itself.
//
// Each part is a hash table with open addressing and linear probing. Next to each
// node is a tag, a part of the hash of its path. A search compares tags and reads
// only nodes with an equal tag, and moving a node to another slot does not read it.
// Nothing depends on the slots of nodes. They differ from run to run, so no client
// can choose colliding paths.
type nodeTable struct {
	seed  maphash.Seed
	count int
	parts [tableParts]tablePart
}

// tablePart is one part. At most four in five slots are used.
type tablePart struct {
	tags  []uint32 // 0 for a free slot
	nodes []*node
	used  int
	index int // of this part in the table
}

func newNodeTable() nodeTable {
	t := nodeTable{seed: maphash.MakeSeed()}
	for i := range t.parts {
		t.parts[i].index = i
	}
	return t
}

// len returns the number of nodes.
func (t *nodeTable) len() int { return t.count }

// get returns the node at path, or nil.
func (t *nodeTable) get(path string) *node {
	p, tag := t.locate(path)
	if i := p.find(tag, path); i >= 0 {
		return p.nodes[i]
	}
	return nil
}

// put adds a node. The table must not have a node with its path.
func (t *nodeTable) put(n *node) {
	p, tag := t.locate(n.path())
	p.reserve()
	p.insert(tag, n)
	t.count++
}

// remove removes the node at path, if there is one. The part shrinks when few nodes
// are left.
func (t *nodeTable) remove(path string) {
	p, tag := t.locate(path)
	i := p.find(tag, path)
	if i < 0 {
		return
	}
	p.clear(i)
	p.used--
	t.count--
	if size := len(p.tags) / 2; size >= minSlots && p.used < size/2 {
		p.resize(size)
	}
}

// locate returns the part and the tag of a path. They are made of different bits of
// the hash.
func (t *nodeTable) locate(path string) (*tablePart, uint32) {
	h := maphash.String(t.seed, path)
	return &t.parts[h>>32%tableParts], max(uint32(h), 1)
}

// startSlot returns the slot at which the search for a tag begins.
func (p *tablePart) startSlot(tag uint32) int {
	return int(uint64(tag) * uint64(len(p.tags)) >> 32)
}

// nextSlot returns the slot after i.
func (p *tablePart) nextSlot(i int) int {
	if i++; i < len(p.tags) {
		return i
	}
	return 0
}

// find returns the slot of the node at path, or -1. The loop ends because some slots
// are free.
func (p *tablePart) find(tag uint32, path string) int {
	if len(p.tags) == 0 {
		return -1
	}
	for i := p.startSlot(tag); p.tags[i] != 0; i = p.nextSlot(i) {
		if p.tags[i] == tag && p.nodes[i].path() == path {
			return i
		}
	}
	return -1
}

// reserve counts one more node, for which the caller calls insert. The part grows if too few
// slots are free.
func (p *tablePart) reserve() {
	p.used++
	if p.used*5 <= len(p.tags)*4 {
		return
	}
	size := max(len(p.tags)*3/2, minSlots)
	if len(p.tags) < spreadSlots && size >= spreadSlots {
		size = spreadSlots + p.index
	}
	p.resize(size)
}

// insert puts a node into the first free slot from its start slot on.
func (p *tablePart) insert(tag uint32, n *node) {
	i := p.startSlot(tag)
	for p.tags[i] != 0 {
		i = p.nextSlot(i)
	}
	p.tags[i], p.nodes[i] = tag, n
}

// clear frees a slot. It moves up later nodes that would not be found any more,
// because their search begins before the gap.
func (p *tablePart) clear(gap int) {
	for i := p.nextSlot(gap); p.tags[i] != 0; i = p.nextSlot(i) {
		// The distance of i from the start of its search, and from the gap.
		if p.distance(p.startSlot(p.tags[i]), i) >= p.distance(gap, i) {
			p.tags[gap], p.nodes[gap] = p.tags[i], p.nodes[i]
			gap = i
		}
	}
	p.tags[gap], p.nodes[gap] = 0, nil
}

// distance returns how many slots a search advances from one slot to another.
func (p *tablePart) distance(from, to int) int {
	if to < from {
		to += len(p.tags)
	}
	return to - from
}

// resize changes the number of slots, which must be sufficient.
func (p *tablePart) resize(slots int) {
	old := *p
	p.tags, p.nodes = make([]uint32, slots), make([]*node, slots)
	for i, tag := range old.tags {
		if tag != 0 {
			p.insert(tag, old.nodes[i])
		}
	}
}
