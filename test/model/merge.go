package model

import (
	"cmp"
	"slices"
)

// Merge merges the histories of several processes on one machine. Each history must be in
// the order of its times. No two histories may share an attempt or a client.
//
// A killed process may still record events for a moment. So Merge puts each Kill after the
// last event of its client, and keeps its time.
func Merge(name string, seed uint64, parts ...*History) *History {
	merged := &History{Name: name, Seed: seed}
	var kills []Event
	for _, p := range parts {
		for _, e := range p.Events {
			if e.Op == Kill {
				kills = append(kills, e)
				continue
			}
			merged.Events = append(merged.Events, e)
		}
	}
	slices.SortStableFunc(merged.Events, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	merged.Events = append(merged.Events, kills...)
	return merged
}
