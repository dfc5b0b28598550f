package tree

import (
	"hash/maphash"
	"iter"
)

const (
	// fewPaths is how many paths a pathSet keeps in one map. Beyond that, it has manyMaps maps,
	// so that none of them takes long to replace.
	fewPaths, manyMaps = 1024, 64
	// keptPaths is for how many paths an empty map is kept: most clients use it again soon.
	keptPaths = 32
)

// pathSet is a set of paths whose memory is bounded by its present size. A Go map never shrinks,
// so the set replaces a map when a half to a quarter of its paths is left. The zero value is an
// empty set.
type pathSet struct {
	maps  []pathMap // none, one, or manyMaps: by the hash of the path
	count int
}

// pathMap is one map of a pathSet.
type pathMap struct {
	paths map[string]struct{}
	most  int // the most paths that the map had
}

var pathSeed = maphash.MakeSeed()

// index returns the index of the map for a path.
func (s *pathSet) index(path string) int {
	if len(s.maps) == 1 {
		return 0
	}
	return int(maphash.String(pathSeed, path) % manyMaps)
}

// has reports whether the set has a path.
func (s *pathSet) has(path string) bool {
	if s.count == 0 {
		return false
	}
	_, ok := s.maps[s.index(path)].paths[path]
	return ok
}

// all yields the paths. The set may lose the path that was yielded, but must not change otherwise.
func (s *pathSet) all() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, m := range s.maps {
			for path := range m.paths {
				if !yield(path) {
					return
				}
			}
		}
	}
}

// add adds a path that the set does not have.
func (s *pathSet) add(path string) {
	switch {
	case s.count == 0:
		if len(s.maps) == 0 {
			s.maps = make([]pathMap, 1)
		}
	case s.count == fewPaths && len(s.maps) == 1:
		s.rebuild(manyMaps)
	}
	s.maps[s.index(path)].add(path)
	s.count++
}

// remove removes a path that the set has.
func (s *pathSet) remove(path string) {
	i := s.index(path)
	m := &s.maps[i]
	delete(m.paths, path)
	s.count--
	// The maps have about equally many paths, so with equal limits, all would be replaced at the
	// same time.
	limit := m.most * manyMaps / (2*manyMaps + 2*i)
	switch {
	case s.count == fewPaths/4 && len(s.maps) > 1:
		s.rebuild(1)
	case m.most > keptPaths && len(m.paths) <= limit:
		*m = m.clone()
	}
}

// rebuild distributes the paths to n new maps.
func (s *pathSet) rebuild(n int) {
	old := *s
	s.maps = make([]pathMap, n)
	for path := range old.all() {
		s.maps[s.index(path)].add(path)
	}
}

func (m *pathMap) add(path string) {
	if m.paths == nil {
		m.paths = make(map[string]struct{})
	}
	m.paths[path] = struct{}{}
	m.most = max(m.most, len(m.paths))
}

// clone returns a map without free room.
func (m *pathMap) clone() pathMap {
	n := len(m.paths)
	if n == 0 {
		return pathMap{}
	}
	c := pathMap{make(map[string]struct{}, n), n}
	for path := range m.paths {
		c.paths[path] = struct{}{}
	}
	return c
}
