package inspect

import (
	"cmp"
	"context"
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/internal/queue"
	"github.com/zklock/zklock/zk"
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

// isMisnamed reports whether an entry contends by a name of a known layout, although its data
// declare the custom layout that made the name. Then its client may not wait for the entries
// before it.
func isMisnamed(e zklock.Entry) bool {
	if e.Mode != zklock.Exclusive && e.Mode != zklock.Shared || !declaresLayout(e) {
		return false
	}
	names := namesOf(e.Owner.Layout)
	names.Prefix, names.Only = e.Owner.Layout.Prefix, e.Owner.Layout.InParent
	return names.Misnames(e.Name)
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

// maxInParent is how many znodes readInParent reads to find one that declares a layout.
const maxInParent = 16

// readInParent reads the lock at a path without entries, if the data of an entry in the parent of
// the path declare a layout with several locks in one parent. It returns nil if none does, or if
// the path has a znode: then clients that may create znodes only in the parent, and not below the
// path, cannot make the lock seem to be held. The result is for display only.
func (r *Reader) readInParent(ctx context.Context, at string) (*Lock, error) {
	parent, last := path.Split(at)
	parent = strings.TrimSuffix(parent, "/")
	if parent == "" {
		return nil, nil // no such lock is at the root
	}
	if _, found, err := r.z.Exists(ctx, at); err != nil || found {
		return nil, err
	}
	stat, _, err := r.z.Exists(ctx, parent)
	if err != nil || stat.NumChildren == 0 || int(stat.NumChildren) > r.maxChildren {
		return nil, err
	}
	known := map[string]bool{} // the names without their sequence numbers
	for reads, ended := 0, true; ended; {
		children, _, err := r.z.Children(ctx, parent)
		if err != nil {
			return nil, err
		}
		ended = false // whether an entry ended unread: then an entry that is not listed may hold
		for _, child := range children {
			if !isSequential(child) {
				continue
			}
			stem := child[:len(child)-sequenceDigits]
			if known[stem] || !strings.Contains(stem, last) {
				continue
			}
			if reads++; reads > maxInParent {
				return nil, nil
			}
			layout, there, err := r.declaredLayout(ctx, parent+"/"+child)
			if err != nil {
				return nil, err
			}
			known[stem], ended = there, ended || !there
			if layout.InParent && (stem == layout.Prefix+last+layout.Exclusive || layout.Shared != "" && stem == layout.Prefix+last+layout.Shared) {
				return r.readDeclared(ctx, at, layout)
			}
		}
	}
	return nil, nil
}

// declaredLayout returns the layout that the data of a znode declare, if it is an entry, and
// whether the znode exists.
func (r *Reader) declaredLayout(ctx context.Context, node string) (l zklock.Layout, there bool, err error) {
	stat, there, err := r.z.Exists(ctx, node)
	if err != nil || stat.EphemeralOwner == 0 || stat.NumChildren > 0 { // Inspect would read the children
		return l, there, ignoreNoAuth(err)
	}
	found, err := r.plain.Inspect(ctx, node)
	if errors.Is(err, zklock.ErrInvalidName) || errors.Is(err, zk.ErrNoAuth) {
		return l, true, nil
	}
	if len(found) == 1 && declaresLayout(found[0]) {
		l = found[0].Owner.Layout
	}
	return l, len(found) > 0, err
}

// readDeclared reads the lock at a path in a layout that only the data of an entry declare.
func (r *Reader) readDeclared(ctx context.Context, at string, layout zklock.Layout) (*Lock, error) {
	c := zklock.New(r.z, &zklock.Options{Anonymous: true, Layout: layout})
	defer c.Close() // it has nothing on the servers
	l, err := r.readWith(ctx, c, at, nil)
	if errors.Is(err, zklock.ErrInvalidName) || errors.Is(err, zklock.ErrInvalidOptions) {
		return nil, nil // the layout does not permit the name, or has names of a known layout
	}
	if l != nil {
		l.Layout = layout
	}
	return l, err
}

// mayDeclare returns the children whose data may declare a custom layout, by their sequence numbers:
// of those with the same name before the number, which one client can have made, the first two,
// so that one znode of another client hides no lock.
func (r *Reader) mayDeclare(children []string) []string {
	split := func(name string) (stem, digits string) {
		return name[:len(name)-sequenceDigits], name[len(name)-sequenceDigits:]
	}
	var all []string
	for _, child := range children {
		if isSequential(child) && !r.isEntry(child) {
			all = append(all, child)
		}
	}
	slices.SortFunc(all, func(a, b string) int {
		stemA, digitsA := split(a)
		stemB, digitsB := split(b)
		return cmp.Or(strings.Compare(digitsA, digitsB), strings.Compare(stemA, stemB))
	})
	const most = 2
	found := map[string]int{}
	return slices.DeleteFunc(all, func(child string) bool {
		stem, _ := split(child)
		found[stem]++
		return found[stem] > most
	})
}
