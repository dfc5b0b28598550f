package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Multi is any number of locks of all kinds. A hold has one or several of them at the same
// time, with one token.
func Multi() Model { return Model{Name: "multi", start: multiState{}} }

// multiState is the state of each path.
type multiState struct{ paths map[string]pathState }

func (s multiState) key() string {
	var b strings.Builder
	for _, path := range slices.Sorted(maps.Keys(s.paths)) {
		fmt.Fprintf(&b, "%s: %s\n", path, s.paths[path].key())
	}
	return b.String()
}

func (s multiState) after(m move) state {
	paths := maps.Clone(s.paths)
	if paths == nil {
		paths = map[string]pathState{}
	}
	for _, c := range m.claims {
		if m.kind == downgrade && c.Mode != Exclusive {
			return nil
		}
		next, ok := paths[c.Path].after(m, c)
		if !ok {
			return nil
		}
		paths[c.Path] = next
	}
	return multiState{paths: paths}
}
