package tree

import "hash/maphash"

const (
	// tableParts is how many parts a nodeTable has. They grow one at a time, so
	// that the node which makes one grow does not wait for a million others to move.
	tableParts = 64
	// leastPlaces is how many places a part has at the least, once it has any.
	leastPlaces = 8
)

// nodeTable finds nodes by their paths. A map would have, for each node, the
// header of the path's string and its own pointer with room to grow: 41 bytes.
// Here it is 18, since the path is asked of the node itself.
//
// Each part is a table with open addressing and linear probing. Beside each node
// is a tag, a part of its path's hash: a search compares tags and looks at nodes
// only where they are equal, and to move a node to another place takes no look at
// it. Nothing depends on the places of nodes: they differ from run to run, so that
// no client can choose paths that meet.
type nodeTable struct {
	seed  maphash.Seed
	count int
	parts [tableParts]tablePart
}

// tablePart is one part: places of which at most four in five are taken.
type tablePart struct {
	tags  []uint32 // 0 for a free place
	nodes []*node
	used  int
}

func newNodeTable() nodeTable { return nodeTable{seed: maphash.MakeSeed()} }

// len is the number of nodes.
func (t *nodeTable) len() int { return t.count }

// get returns the node at path, nil if there is none.
func (t *nodeTable) get(path string) *node {
	p, tag := t.spot(path)
	if i := p.find(tag, path); i >= 0 {
		return p.nodes[i]
	}
	return nil
}

// put adds a node. There is none with its path.
func (t *nodeTable) put(n *node) {
	p, tag := t.spot(n.path())
	if (p.used+1)*5 > len(p.tags)*4 {
		p.resize(max(len(p.tags)*3/2, leastPlaces))
	}
	p.insert(tag, n)
	p.used++
	t.count++
}

// remove takes the node at path out, if there is one. The table becomes smaller
// when little is left.
func (t *nodeTable) remove(path string) {
	p, tag := t.spot(path)
	i := p.find(tag, path)
	if i < 0 {
		return
	}
	p.clear(i)
	p.used--
	t.count--
	if size := len(p.tags) / 2; size >= leastPlaces && p.used < size/2 {
		p.resize(size)
	}
}

// spot is where a path belongs: in which part, and with which tag. The two are
// made of different bits.
func (t *nodeTable) spot(path string) (*tablePart, uint32) {
	h := maphash.String(t.seed, path)
	return &t.parts[h>>32%tableParts], max(uint32(h), 1)
}

// home is the place where the search for a tag begins.
func (p *tablePart) home(tag uint32) int {
	return int(uint64(tag) * uint64(len(p.tags)) >> 32)
}

// after is the place behind i.
func (p *tablePart) after(i int) int {
	if i++; i < len(p.tags) {
		return i
	}
	return 0
}

// find returns the place of the node at path, -1 if there is none. It comes to an
// end since some places are free.
func (p *tablePart) find(tag uint32, path string) int {
	if len(p.tags) == 0 {
		return -1
	}
	for i := p.home(tag); p.tags[i] != 0; i = p.after(i) {
		if p.tags[i] == tag && p.nodes[i].path() == path {
			return i
		}
	}
	return -1
}

// insert puts a node into the first free place from its home on.
func (p *tablePart) insert(tag uint32, n *node) {
	i := p.home(tag)
	for p.tags[i] != 0 {
		i = p.after(i)
	}
	p.tags[i], p.nodes[i] = tag, n
}

// clear frees a place, and moves up what stands behind it and would not be found
// any more, as its search began before the gap.
func (p *tablePart) clear(gap int) {
	for i := p.after(gap); p.tags[i] != 0; i = p.after(i) {
		// How far i is from where its search begins, and from the gap.
		if p.distance(p.home(p.tags[i]), i) >= p.distance(gap, i) {
			p.tags[gap], p.nodes[gap] = p.tags[i], p.nodes[i]
			gap = i
		}
	}
	p.tags[gap], p.nodes[gap] = 0, nil
}

// distance is how many places a search goes from one to the other.
func (p *tablePart) distance(from, to int) int {
	if to < from {
		to += len(p.tags)
	}
	return to - from
}

// resize gives the part another number of places, which are enough.
func (p *tablePart) resize(places int) {
	old := *p
	p.tags, p.nodes = make([]uint32, places), make([]*node, places)
	for i, tag := range old.tags {
		if tag != 0 {
			p.insert(tag, old.nodes[i])
		}
	}
}
