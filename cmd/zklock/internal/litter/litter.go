// Package litter finds and removes what locks leave behind: parents that are empty
// and that nobody has used for a time. Where the servers know containers they remove
// those themselves; kazoo's locks, semaphores that were made by hand, and servers
// before ZooKeeper 3.5 leave persistent ones for ever.
//
// A server notes at which transaction a znode's children changed last, and not when.
// So the time is known by comparison: any znode that was made later, and whose time
// of making is known, shows that it was before that. A mark that each run leaves for
// the next makes sure that there is such a znode.
package litter

import (
	"cmp"
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zklock/zklock/zk"
)

// Bounds of a search.
const (
	readers  = 16 // at a time
	maxDepth = 64
)

// Mark is the znode that each run leaves for the next.
const Mark = "/zklock-gc"

// markData tells who finds it what it is.
const markData = "zklock gc leaves this as a mark in time, to know what was not used since"

// DefaultReads is how many znodes a search reads at most unless it says otherwise.
const DefaultReads = 20000

// ErrTooMany ends a search that would take too long.
var ErrTooMany = errors.New("too many znodes to read: give a longer prefix")

// A State is what becomes of a parent.
type State string

// The states of parents.
const (
	Unused   State = "unused"   // it would be removed, or is to be
	Recent   State = "recent"   // empty, and not known to be unused for so long
	Removed  State = "removed"  // it was
	Taken    State = "taken"    // somebody used it meanwhile
	Refused  State = "refused"  // the servers did not let it be removed
	Vanished State = "vanished" // another one removed it
)

// A Parent is an empty lock's parent.
type Parent struct {
	Path  string
	State State
	// Since is when it was used at the latest, by the servers' clocks; zero if that is
	// not known.
	Since time.Time
	// For is how long that is ago by the same clocks; zero with Since.
	For time.Duration
	Err error // why it was refused

	version  int32
	pzxid    int64
	cversion int32 // counts children that came or went
	above    bool  // it has children, which are removed before it
}

// A Search is what to look for. Its zero Unused finds all that is empty.
type Search struct {
	Z      *zk.Client
	Prefix string
	Unused time.Duration
	// Now is the servers' time, see [Search.Ask]: this machine's may be days off. If it
	// is zero, the time of the last change that Find sees stands for it, which is earlier,
	// so that less counts as unused.
	Now   time.Time
	Reads int // at most; 0 means DefaultReads
}

// node is a znode with what is below it.
type node struct {
	path     string
	stat     zk.Stat
	children []*node
	names    int // children that there are
}

// search is one under way.
type search struct {
	Search
	mu    sync.Mutex // guards what follows; not held while reading
	reads int
	err   error
	clock clock
}

// Find returns the empty parents below the prefix, children before their parents. With
// ErrTooMany come those that were found.
func (s Search) Find(ctx context.Context) ([]Parent, error) {
	w := &search{Search: s}
	if stat, there, err := s.Z.Exists(ctx, Mark); err != nil {
		return nil, err
	} else if there {
		w.clock.see(stat)
	}
	root, err := w.tree(ctx)
	if root == nil || err != nil && !errors.Is(err, ErrTooMany) {
		return nil, err
	}
	w.clock.settle()
	if w.Now.IsZero() {
		w.Now = w.clock.last()
	}
	var found []Parent
	for _, child := range root.children {
		w.collect(child, &found)
	}
	return found, err
}

// tree reads what is below the prefix, level by level.
func (w *search) tree(ctx context.Context) (*node, error) {
	root := &node{path: w.Prefix}
	level := []*node{root}
	for depth := 0; depth < maxDepth && len(level) > 0 && w.err == nil; depth++ {
		free := make(chan struct{}, readers)
		var all sync.WaitGroup
		for _, n := range level {
			free <- struct{}{}
			all.Go(func() {
				defer func() { <-free }()
				w.read(ctx, n)
			})
		}
		all.Wait()
		var next []*node
		for _, n := range level {
			next = append(next, n.children...)
		}
		level = next
	}
	return root, w.err
}

// read reads one znode. Of one that cannot be read, or is gone, nothing is found.
func (w *search) read(ctx context.Context, n *node) {
	if !w.spend() {
		return
	}
	names, stat, err := w.Z.Children(ctx, n.path)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case errors.Is(err, zk.ErrNoNode):
		n.names = 1 // whatever it was, it is no empty parent
		return
	case errors.Is(err, zk.ErrNoAuth):
		n.names = 1
		return
	case err != nil:
		w.err = errors.Join(w.err, err)
		return
	}
	n.stat, n.names = stat, len(names)
	w.clock.see(stat)
	for _, name := range names {
		child := path.Join(n.path, name)
		// An entry of a lock has nothing below it, and its parent is in use.
		if child == "/zookeeper" || child == Mark || isEntry(name) {
			continue
		}
		n.children = append(n.children, &node{path: child, names: 1})
	}
	slices.SortFunc(n.children, func(a, b *node) int { return strings.Compare(a.path, b.path) })
}

// spend takes one read off those that may be made.
func (w *search) spend() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return false
	}
	if w.reads++; w.reads > cmp.Or(w.Reads, DefaultReads) {
		w.err = ErrTooMany
		return false
	}
	return true
}

// isEntry reports whether a name ends with a sequence number.
func isEntry(name string) bool {
	const digits = 10
	return len(name) > digits && strings.Trim(name[len(name)-digits:], "0123456789") == ""
}

// collect adds n and what is below it, as far as that is empty, and reports whether
// all of it is unused.
func (w *search) collect(n *node, found *[]Parent) bool {
	all := len(n.children) == n.names
	for _, child := range n.children {
		all = w.collect(child, found) && all
	}
	if !all || !leftBehind(n) {
		return false
	}
	p := Parent{Path: n.path, State: Unused, version: n.stat.Version, pzxid: n.stat.Pzxid, cversion: n.stat.Cversion, above: n.names > 0}
	since, known := w.clock.before(n.stat.Pzxid)
	if known {
		p.Since, p.For = since, max(0, w.Now.Sub(since))
	}
	if w.Unused > 0 && (!known || p.For < w.Unused) {
		p.State = Recent
	}
	*found = append(*found, p)
	return p.State == Unused
}

// leftBehind reports whether a znode whose children are all unused is a parent that a
// lock left: not ephemeral (a container looks like a persistent one, ZooKeeper hides
// its owner), used before, and with nothing written in it. A semaphore's
// leases have their number written there.
func leftBehind(n *node) bool {
	s := n.stat
	return s.EphemeralOwner == 0 && s.Cversion > 0 && (s.DataLength == 0 || path.Base(n.path) == "leases" && s.DataLength <= 10)
}

// Remove removes what was found unused: each only if it is empty still, which the
// servers make sure of as they remove it, and if nobody has used it since. Where
// somebody takes the lock meanwhile, it stays; one who is about to finds no parent
// and makes it again, as he did at first. It ends early with ctx's error, or that of a
// connection.
func (s Search) Remove(ctx context.Context, found []Parent) error {
	kept := map[string]bool{}  // paths below which something stays
	gone := map[string]int32{} // how many children of a path went
	for i := range found {
		p := &found[i]
		if p.State != Unused {
			continue
		}
		if kept[p.Path] {
			p.State = Taken
			kept[path.Dir(p.Path)] = true
			continue
		}
		err := s.remove(ctx, p, gone[p.Path])
		switch p.State {
		case Taken, Refused:
			kept[path.Dir(p.Path)] = true
		case Removed, Vanished:
			gone[path.Dir(p.Path)]++
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// remove removes one parent, of which so many children went since it was found, and
// notes what became of it.
func (s Search) remove(ctx context.Context, p *Parent, gone int32) error {
	stat, there, err := s.Z.Exists(ctx, p.Path)
	switch {
	case err != nil && !errors.Is(err, zk.ErrNoAuth):
		return err
	case err == nil && !there:
		p.State = Vanished
		return nil
	case err == nil && (stat.NumChildren > 0 || stat.Cversion != p.cversion+gone || !p.above && stat.Pzxid != p.pzxid):
		p.State = Taken
		return nil
	}
	switch err := s.Z.Delete(ctx, p.Path, p.version); {
	case err == nil:
		p.State = Removed
	case errors.Is(err, zk.ErrNotEmpty), errors.Is(err, zk.ErrBadVersion):
		p.State = Taken
	case errors.Is(err, zk.ErrNoNode):
		p.State = Vanished
	case errors.Is(err, zk.ErrNoAuth):
		p.State, p.Err = Refused, err
	default:
		return err
	}
	return nil
}

// Leave leaves the mark for the next run: anew if there is none, or if the one that
// is there is older than what is asked for, so that it has served. It is made in the
// servers' time. Without a Now one that is there stays: nobody knows how old it is.
func (s Search) Leave(ctx context.Context) error {
	stat, there, err := s.Z.Exists(ctx, Mark)
	if err != nil {
		return err
	}
	if !there {
		_, _, err = s.Z.Create(ctx, Mark, []byte(markData), zk.OpenACL(), zk.ModePersistent)
		if errors.Is(err, zk.ErrNodeExists) {
			return nil // another run has left it
		}
		return err
	}
	if s.Now.IsZero() || s.Now.Sub(time.UnixMilli(stat.Mtime)) < s.Unused {
		return nil
	}
	_, err = s.Z.Set(ctx, Mark, []byte(markData), stat.Version)
	if errors.Is(err, zk.ErrBadVersion) {
		return nil
	}
	return err
}
