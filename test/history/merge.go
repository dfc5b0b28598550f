package history

import (
	"cmp"
	"slices"
)

// Merge makes one history of those that several processes wrote on one machine,
// each in the order of its times, with attempts and clients that no other has.
//
// A process may run on for a moment after it was to be killed, and write. So a
// Kill is put behind the last event of its client; its time stays.
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
