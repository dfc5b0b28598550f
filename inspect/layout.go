package inspect

import (
	"errors"
	"slices"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/internal/queue"
)

// ErrLayoutUnknown means that only the data of a lock's entries declare the layout. Tools
// can show the lock. To act on it, they need the layout from their user, because anyone can
// write such data.
var ErrLayoutUnknown = errors.New("only the entries' data declare the layout; give it with --layout")

// namesOf returns the entry names of a custom layout.
func namesOf(l zklock.Layout) queue.Names {
	return queue.Names{Layout: queue.Custom, Exclusive: l.Exclusive, Shared: l.Shared}
}

// declaresLayout reports whether an entry's data declare a custom layout that fits its
// name.
func declaresLayout(e zklock.Entry) bool {
	l := e.Owner.Layout
	if e.Session == 0 || l == (zklock.Layout{}) {
		return false
	}
	_, class := namesOf(l).Parse(e.Name)
	return class == queue.Contender
}

// isApart reports whether an entry's data declare a custom layout in which the lock has a
// parent of its own.
func isApart(e zklock.Entry) bool { return declaresLayout(e) && !e.Owner.Layout.InParent }

// arrange arranges the entries of a lock that are strays in the reader's layout. It uses
// the layout that the first of them declares, and returns that layout. The result is for
// display only.
func arrange(entries []zklock.Entry) ([]zklock.Entry, zklock.Layout) {
	i := slices.IndexFunc(entries, isApart)
	contends := func(e zklock.Entry) bool { return e.Mode != zklock.Stray }
	if i < 0 || slices.ContainsFunc(entries, contends) {
		return entries, zklock.Layout{}
	}
	layout := entries[i].Owner.Layout
	byName := make(map[string]zklock.Entry, len(entries))
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i], byName[e.Name] = e.Name, e
	}
	sorted := namesOf(layout).Sort(names)
	arranged := make([]zklock.Entry, 0, len(entries))
	holders := queue.Holders(sorted.Queue)
	for i, c := range sorted.Queue {
		e := byName[c.Name]
		e.Mode, e.Holder = zklock.Exclusive, i < holders
		if c.Kind == queue.Shared {
			e.Mode = zklock.Shared
		}
		arranged = append(arranged, e)
	}
	for _, name := range append(sorted.Malformed, sorted.Foreign...) {
		arranged = append(arranged, byName[name])
	}
	return arranged, layout
}

// firstSequential returns the child with the lowest sequence number among those that are
// not entries in the reader's layout.
func (r *Reader) firstSequential(children []string) (lowest string, found bool) {
	digits := func(name string) string { return name[len(name)-sequenceDigits:] }
	for _, child := range children {
		if isSequential(child) && !r.isEntry(child) && (!found || digits(child) < digits(lowest)) {
			lowest, found = child, true
		}
	}
	return lowest, found
}
