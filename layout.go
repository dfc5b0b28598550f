package zklock

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/zklock/zklock/internal/queue"
)

// A Layout says how the znodes of mutexes and read-write locks are named, and so
// with which other programs they exclude. The zero Layout is Curator's:
// _c_GUID-lock-SEQUENCE, and __READ__ and __WRIT__ for a read-write lock.
// [KazooLayout], [MixedLayout], [LatchLayout] and [WriteLockLayout] are the others that
// are known.
// Everybody on a path should use the same one.
//
// Layouts differ in what is written. Entries of Curator, kazoo, go-zookeeper and
// ZooKeeper's WriteLock are waited for in all of the known ones.
//
// With its fields set, a Layout is one of your own, for sharing locks with
// programs that have a recipe of their own: an entry is named Prefix, a marker,
// and the ten digits that the servers append. Children with one of the markers
// and ten digits contend, and no others. The textbook's read-write locks under one parent,
// [host]-R-0000000001 and [host]-W-0000000002, are
//
//	zklock.Layout{Prefix: host, Exclusive: "-W-", Shared: "-R-"}
//
// Such names don't say by themselves which attempt made them: znodes are known by
// their session and their data. And when the parent is deleted, its numbers begin
// anew, so that a hold's znode can be followed by another of its name: there
// [Hold.Guard] and [Hold.Verify] are refused, and [Options.LockDelay] as well, and
// [Hold.Release] and [Hold.Downgrade] rely on nobody but the holders deleting entries.
type Layout struct {
	// Prefix is what entries' names begin with. It must contain no marker,
	// nor make one up with what follows.
	Prefix string `json:"prefix,omitempty"`
	// Exclusive is the marker of mutexes and writers, with something besides
	// digits in it. It must be set if any field is.
	Exclusive string `json:"exclusive,omitempty"`
	// Shared is the marker of readers. Empty means that there are none.
	Shared string `json:"shared,omitempty"`
	// InParent puts several locks under one parent, told apart by the last level
	// of their names, which follows Prefix: with the marker "_lock_", the mutex
	// "/parent/printer" has the entries /parent/printer_lock_0000000001 and so on.
	// The last level must contain no marker, nor make one up with what follows.
	// Prefix is then a part of the lock's name: who has another one has other locks.
	InParent bool `json:"in_parent,omitempty"`

	kind queue.Layout
}

// KazooLayout writes kazoo's names, for fleets in which most use kazoo: its Lock,
// ReadLock, WriteLock and Election wait for them without being told of extra
// patterns. Parents are made persistent, which kazoo needs. kazoo's Lock does not
// heed readers, and its znodes are named as a WriteLock's: keep it off paths that
// have readers, as nothing here can tell it from a WriteLock and refuse them.
func KazooLayout() Layout { return Layout{kind: queue.Kazoo} }

// MixedLayout writes two entries in one transaction, one with Curator's name and
// one with kazoo's, for fleets of both, which by themselves do not exclude each
// other: each sees one of them. Parents are made persistent, which kazoo needs.
func MixedLayout() Layout { return Layout{kind: queue.Mixed} }

// LatchLayout writes the names of Curator's LeaderLatch, for taking part in its
// elections. It has no readers.
func LatchLayout() Layout { return Layout{kind: queue.Latch} }

// WriteLockLayout writes the names of WriteLock, the recipe in ZooKeeper's own source:
// x-SESSION-SEQUENCE. Mutexes in Curator's layout exclude with WriteLock as well, since
// it waits for every name that ends in a hyphen and a number; this one is for programs
// that know its names. It has no readers, and its names have no room for a GUID: what a
// Layout of one's own says of that holds here, too. Curator, kazoo and go-zookeeper do
// not wait for such names. WriteLock orders by the number from ZooKeeper 3.5.4 on;
// before, it ordered by the session, and excluded nobody.
func WriteLockLayout() Layout { return Layout{kind: queue.WriteLock} }

// String names the layout.
func (l Layout) String() string {
	switch {
	case l.custom():
		return fmt.Sprintf("layout %s[%s|%s]", l.Prefix, l.Exclusive, l.Shared)
	case l.kind == queue.Kazoo:
		return "kazoo's layout"
	case l.kind == queue.Mixed:
		return "the mixed layout"
	case l.kind == queue.Latch:
		return "LeaderLatch's layout"
	case l.kind == queue.WriteLock:
		return "WriteLock's layout"
	}
	return "Curator's layout"
}

// custom reports whether any field is set.
func (l Layout) custom() bool { return l != Layout{kind: l.kind} }

// readers reports whether shared entries can be written.
func (l Layout) readers() bool {
	return l.kind != queue.Latch && l.kind != queue.WriteLock && (!l.custom() || l.Shared != "")
}

// persistent reports whether parents must not be containers.
func (l Layout) persistent() bool { return l.kind == queue.Kazoo || l.kind == queue.Mixed }

// names is the layout in the core's terms, for a lock whose last level is last.
func (l Layout) names(last string) queue.Names {
	if !l.custom() {
		return queue.Names{Layout: l.kind}
	}
	n := queue.Names{Layout: queue.Custom, Prefix: l.Prefix, Exclusive: l.Exclusive, Shared: l.Shared, Only: l.InParent}
	if l.InParent {
		n.Prefix += last
	}
	return n
}

// check returns what is wrong with the layout.
func (l Layout) check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: Layout: "+format, append([]any{ErrInvalidOptions}, args...)...)
	}
	switch {
	case !l.custom():
		return nil
	case l.kind != queue.Curator:
		return bad("%s has no fields to set", Layout{kind: l.kind})
	case l.Exclusive == "":
		return bad("Exclusive is empty")
	case strings.Contains(l.Exclusive, l.Shared) && l.Shared != "", strings.Contains(l.Shared, l.Exclusive):
		return bad("one of the markers %q and %q contains the other", l.Exclusive, l.Shared)
	case l.hasMarker(l.Prefix):
		return bad("Prefix %q contains a marker", l.Prefix)
	case l.misread(l.Prefix):
		return bad("behind Prefix %q a reader's marker %q looks like %q", l.Prefix, l.Shared, l.Exclusive)
	}
	for _, s := range []string{l.Prefix, l.Exclusive, l.Shared} {
		switch {
		case len(s) > maxName || !utf8.ValidString(s) || strings.ContainsRune(s, '/') || strings.ContainsFunc(s, forbidden):
			return bad("%q can't be part of a znode's name", s)
		case s != "" && s != l.Prefix && strings.Trim(s, "0123456789") == "":
			return bad("marker %q is a number", s)
		}
	}
	return nil
}

// hasMarker reports whether s contains one of the markers.
func (l Layout) hasMarker(s string) bool {
	return l.Exclusive != "" && strings.Contains(s, l.Exclusive) || l.Shared != "" && strings.Contains(s, l.Shared)
}

// misread reports whether a reader's entry with this prefix would be taken for
// something else, as the prefix's end and the marker make up the other marker.
func (l Layout) misread(prefix string) bool {
	markers := Layout{Exclusive: l.Exclusive, Shared: l.Shared}
	e, class := markers.names("").Parse(prefix + l.Shared + "0000000000")
	return l.Shared != "" && (class != queue.Contender || e.Kind != queue.Shared)
}

// lockPath is lockPath, but refuses what looks like an entry in the client's own
// layout as well: there it would stand in a queue, for ever.
func (c *Client) lockPath(name string) (string, error) {
	path, err := lockPath(name)
	layout := c.opts.Layout
	if err != nil || !layout.custom() {
		return path, err
	}
	anybodys := Layout{Exclusive: layout.Exclusive, Shared: layout.Shared}.names("")
	for level := range strings.SplitSeq(path[1:], "/") {
		if _, class := anybodys.Parse(level); class != queue.Foreign {
			return path, fmt.Errorf("%w: level %q looks like an entry in a lock's queue", ErrInvalidName, level)
		}
	}
	return path, nil
}

// queuePart returns the part that stands for a queue with this name in the
// client's layout.
func (c *Client) queuePart(name string, kind queue.Kind, writer bool) (part, error) {
	layout := c.opts.Layout
	mode := Exclusive
	if kind == queue.Shared {
		mode = Shared
	}
	path, err := c.lockPath(name)
	p := part{path: path, mode: mode, member: queue.Member{
		Path: path, Kind: kind, Writer: writer, Beside: c.opts.SharedBesideForeign, Names: layout.names(""),
	}}
	if err != nil || !layout.InParent {
		return p, err
	}
	last := path[strings.LastIndexByte(path, '/')+1:]
	switch {
	case len(path) == len(last)+1:
		return p, fmt.Errorf("%w: a lock's znodes can't be at the root; name a parent and the lock below it", ErrInvalidName)
	case layout.hasMarker(layout.Prefix + last), layout.misread(layout.Prefix + last):
		return p, fmt.Errorf("%w: %q contains a marker of the layout's, and would be taken for another lock", ErrInvalidName, last)
	}
	p.member.Path = strings.TrimSuffix(path, "/"+last)
	p.member.Names = layout.names(last)
	return p, nil
}
