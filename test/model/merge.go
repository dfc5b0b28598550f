package model

import (
	"cmp"
	"slices"
)

// Merge merges the histories of several processes on one machine into one. Each must be
// in the order of its times, with attempts and clients of its own.
//
// A process may run for a moment after it is killed, and record events. So a Kill is
// placed after the last event of its client, and keeps its time.
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
