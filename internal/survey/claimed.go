package survey

import (
	"errors"
	"slices"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/internal/queue"
)

// ErrLayout is for a lock of which only the owners' data tell the layout. It can be
// shown; whatever acts on it needs the layout from its user, since anybody can write
// such data.
var ErrLayout = errors.New("its entries are in a layout of their owners' own; give it with --layout")

// namesOf are those of any entry in a layout of somebody's own.
func namesOf(l zklock.Layout) queue.Names {
	return queue.Names{Layout: queue.Custom, Exclusive: l.Exclusive, Shared: l.Shared}
}

// claimed reports whether an entry's owner says that it is one of a layout of the
// owner's own, and it is named so.
func claimed(e zklock.Entry) bool {
	l := e.Owner.Layout
	if e.Session == 0 || l == (zklock.Layout{}) {
		return false
	}
	_, class := namesOf(l).Parse(e.Name)
	return class == queue.Contender
}

// adopt arranges the entries of a lock that are strays to the reader's layout as the
// first of their owners to tell of another layout says, and returns that layout. It is
// for display alone.
func adopt(entries []zklock.Entry) ([]zklock.Entry, zklock.Layout) {
	apart := func(e zklock.Entry) bool { return claimed(e) && !e.Owner.Layout.InParent }
	i := slices.IndexFunc(entries, apart)
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

// sequential returns the child with the lowest number of those that have one and are no
// entries in the reader's layout.
func (r *Reader) sequential(children []string) (lowest string, found bool) {
	digits := func(name string) string { return name[len(name)-sequenceDigits:] }
	for _, child := range children {
		if len(child) <= sequenceDigits || r.isEntry(child) || !allDigits(digits(child)) {
			continue
		}
		if !found || digits(child) < digits(lowest) {
			lowest, found = child, true
		}
	}
	return lowest, found
}

func allDigits(s string) bool {
	return !slices.ContainsFunc([]byte(s), func(c byte) bool { return c < '0' || c > '9' })
}
