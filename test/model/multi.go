package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Multi is any number of locks of all kinds, of which a hold has one or several
// at the same time, all under one token.
func Multi() Model { return Model{Name: "multi", start: multiState{}} }

// multiState is all places by their paths.
type multiState struct{ places map[string]place }

func (s multiState) key() string {
	var b strings.Builder
	for _, path := range slices.Sorted(maps.Keys(s.places)) {
		fmt.Fprintf(&b, "%s: %s\n", path, s.places[path].key())
	}
	return b.String()
}

func (s multiState) after(m move) state {
	places := maps.Clone(s.places)
	if places == nil {
		places = map[string]place{}
	}
	for _, c := range m.claims {
		if m.kind == lower && c.Mode != Exclusive {
			return nil
		}
		next, ok := places[c.Path].after(m, c)
		if !ok {
			return nil
		}
		places[c.Path] = next
	}
	return multiState{places: places}
}
