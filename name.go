package zklock

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/zklock/zklock/internal/queue"
)

// Bounds of lock names, without the prefix nameRoot. ZooKeeper itself only limits the
// size of a frame.
const (
	maxNameSize = 512 // bytes
	maxLevels   = 16
)

// nameRoot is the parent of relative names.
const nameRoot = "/zklock/"

// PathOf returns the path of the znode that a lock name means, below the chroot of the
// connection string, or an error that wraps ErrInvalidName. Use it to reject an invalid
// name before connecting.
func PathOf(name string) (string, error) { return parseName(name, Layout{}) }

// parseName is the one place that validates a lock name. It returns the path of the znode
// of the lock: "demo" means "/zklock/demo", and a name that begins with a slash is the
// path itself.
func parseName(name string, layout Layout) (string, error) {
	bad := func(format string, args ...any) (string, error) {
		return name, fmt.Errorf("%w: "+format, append([]any{ErrInvalidName}, args...)...)
	}
	if name == "" {
		return bad("it is empty")
	}
	// The path of a valid name must be valid too, because it is used as a name.
	bounded := strings.TrimPrefix(name, nameRoot)
	if len(bounded) > maxNameSize {
		return bad("it has %d bytes; at most %d are allowed", len(bounded), maxNameSize)
	}
	if !utf8.ValidString(name) {
		return bad("it is not UTF-8")
	}
	for i, r := range name {
		if forbidden(r) {
			return bad("ZooKeeper does not allow character %U at byte %d in a path", r, i)
		}
	}
	levels := strings.Split(strings.TrimPrefix(name, "/"), "/")
	if n := strings.Count(strings.TrimPrefix(bounded, "/"), "/") + 1; n > maxLevels {
		return bad("it has %d levels; at most %d are allowed", n, maxLevels)
	}
	for _, level := range levels {
		switch level {
		case "":
			return bad("it has an empty level: two slashes in a row, or one at the end")
		case ".", "..":
			return bad("a level may not be %q", level)
		}
		// Below another lock, its znode would be in that lock's queue forever.
		if isEntryName(level, layout) {
			return bad("level %q looks like an entry in a lock's queue", level)
		}
	}
	if levels[0] == "zookeeper" {
		return bad("/zookeeper belongs to the servers")
	}
	if name[0] == '/' {
		return name, nil
	}
	return nameRoot + name, nil
}

// isEntryName reports whether a znode with this name would be an entry of a lock's queue,
// in a known layout or in the client's own.
func isEntryName(level string, layout Layout) bool {
	if _, class := queue.ParseName(level); class != queue.Foreign {
		return true
	}
	if !layout.isCustom() {
		return false
	}
	_, class := Layout{Exclusive: layout.Exclusive, Shared: layout.Shared}.names("").Parse(level)
	return class != queue.Foreign
}

// forbidden reports whether ZooKeeper rejects the character in a path, as
// org.apache.zookeeper.common.PathUtils does. Java checks UTF-16 units, so characters
// that need two of them are rejected too.
func forbidden(r rune) bool {
	return r <= 0x1f || r >= 0x7f && r <= 0x9f || r >= 0xd800 && r <= 0xf8ff || r >= 0xfff0
}

// A Layout determines the names of the znodes of mutexes and read-write locks, and
// thereby which other programs they exclude. The zero Layout is Curator's:
// _c_GUID-lock-SEQUENCE, and __READ__ and __WRIT__ for a read-write lock. [KazooLayout],
// [MixedLayout], [LatchLayout], and [WriteLockLayout] are the other known ones. All
// clients on a path should use the same layout.
//
// Layouts differ in what is written. All known layouts wait for entries of Curator,
// kazoo, go-zookeeper, and ZooKeeper's WriteLock.
//
// A Layout with fields is a custom layout, for sharing locks with programs that have a
// recipe of their own. The name of an entry is Prefix, a marker, and the ten digits that
// the servers append. Children with one of the markers and ten digits contend, and no
// others. For example, a read-write lock whose readers are named [host]-R-0000000001 and
// whose writers are named [host]-W-0000000002 has this layout:
//
//	zklock.Layout{Prefix: host, Exclusive: "-W-", Shared: "-R-"}
//
// A custom layout with names of a known layout, such as [host]-lock-0000000001, is rejected.
// Clients with a known layout wait for such an entry, but its client may not wait for theirs.
//
// Such names do not identify the acquire that created them: the client recognizes its
// znodes by their session and their data. And if the parent is deleted, its sequence
// numbers restart, so another client's znode can get the name of a hold's former znode.
// Therefore [Hold.Guard], [Hold.Verify], and [Options].LockDelay are rejected for custom
// layouts, and [Hold.Release] and [Hold.Downgrade] assume that only holders delete
// entries.
type Layout struct {
	// Prefix is the beginning of entries' names. It must not contain a marker, nor
	// form one together with what follows.
	Prefix string `json:"prefix,omitempty"`
	// Exclusive is the marker of mutexes and writers. It must contain a character
	// that is not a digit. It must be set if any field is set.
	Exclusive string `json:"exclusive,omitempty"`
	// Shared is the marker of readers. Empty means that there are no readers.
	Shared string `json:"shared,omitempty"`
	// InParent puts several locks under one parent. The last level of their names,
	// which follows Prefix, distinguishes them: with the marker "_lock_", the mutex
	// "/parent/printer" has the entries /parent/printer_lock_0000000001 and so on.
	// The last level must not contain a marker, nor form one together with what
	// follows. Prefix is then a part of the lock's name: clients with different
	// prefixes have different locks.
	InParent bool `json:"in_parent,omitempty"`

	kind queue.Layout
}

// KazooLayout returns the layout of kazoo, for fleets in which most programs use kazoo:
// its Lock, ReadLock, WriteLock, and Election wait for such entries without extra
// patterns. Parents are persistent, which kazoo needs. kazoo's Lock does not wait for
// readers, and its znodes have the same names as those of its WriteLock. So zklock cannot
// detect them, and does not fail with ErrForeignMutex: do not use kazoo's Lock on paths
// that have readers.
func KazooLayout() Layout { return Layout{kind: queue.Kazoo} }

// MixedLayout returns a layout that creates two entries in one transaction, one with
// Curator's name and one with kazoo's. It is for fleets with both. Each of the two
// libraries sees only one of the entries; by themselves, they do not exclude each other.
// Parents are persistent, and kazoo's Lock does not wait for readers, see [KazooLayout].
func MixedLayout() Layout { return Layout{kind: queue.Mixed} }

// LatchLayout returns the layout of Curator's LeaderLatch, for taking part in its
// elections. It has no readers.
func LatchLayout() Layout { return Layout{kind: queue.Latch} }

// WriteLockLayout returns the layout of WriteLock, the recipe in ZooKeeper's own source:
// x-SESSION-SEQUENCE. Mutexes in Curator's layout exclude WriteLock too, because it waits
// for every name that ends in a hyphen and a number. This layout is for programs that
// know WriteLock's names. It has no readers, and its names have no room for a GUID, so
// the limits of custom layouts apply, see [Layout]. Curator, kazoo, and go-zookeeper do
// not wait for such names. WriteLock orders by the sequence number since ZooKeeper 3.5.4.
// Before, it ordered by the session, and did not exclude.
func WriteLockLayout() Layout { return Layout{kind: queue.WriteLock} }

// String returns the name of the layout.
func (l Layout) String() string {
	switch {
	case l.isCustom():
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

// isCustom reports whether any field is set.
func (l Layout) isCustom() bool { return l != Layout{kind: l.kind} }

// hasReaders reports whether the layout has shared entries.
func (l Layout) hasReaders() bool {
	return l.kind != queue.Latch && l.kind != queue.WriteLock && (!l.isCustom() || l.Shared != "")
}

// needsPersistentParents reports whether parents must not be containers.
func (l Layout) needsPersistentParents() bool { return l.kind == queue.Kazoo || l.kind == queue.Mixed }

// names returns the layout for the core, for a lock whose last level is last.
func (l Layout) names(last string) queue.Names {
	if !l.isCustom() {
		return queue.Names{Layout: l.kind}
	}
	n := queue.Names{Layout: queue.Custom, Prefix: l.Prefix, Exclusive: l.Exclusive, Shared: l.Shared, Only: l.InParent}
	if l.InParent {
		n.Prefix += last
	}
	return n
}

// invalid returns an error about the layout.
func (l Layout) invalid(format string, args ...any) error {
	return fmt.Errorf("%w: Layout: "+format, append([]any{ErrInvalidOptions}, args...)...)
}

// Validate returns nil, or an error that wraps ErrInvalidOptions and says why the layout is
// invalid. Clients with an invalid layout fail. With InParent, a name can be invalid in a valid
// layout.
func (l Layout) Validate() error {
	if err := l.checkFields(); err != nil || !l.isCustom() {
		return err
	}
	prefix := l.Prefix
	if l.InParent {
		prefix += "n" // the name of a lock that forms no marker
	}
	if name, known := l.knownName(prefix); name != "" {
		return l.invalid("entries such as %q would have names of %s; use that layout, or another marker",
			name, known)
	}
	return nil
}

// checkFields returns why entries in the layout could not be parsed in it, or nil.
func (l Layout) checkFields() error {
	bad := l.invalid
	switch {
	case !l.isCustom():
		return nil
	case l.kind != queue.Curator:
		return bad("%s has no fields to set", Layout{kind: l.kind})
	case l.Exclusive == "":
		return bad("Exclusive is empty")
	case strings.Contains(l.Exclusive, l.Shared) && l.Shared != "", strings.Contains(l.Shared, l.Exclusive):
		return bad("one of the markers %q and %q contains the other", l.Exclusive, l.Shared)
	case l.hasMarker(l.Prefix):
		return bad("Prefix %q contains a marker", l.Prefix)
	case l.isAmbiguous(l.Prefix):
		return bad("after Prefix %q, the marker of readers %q looks like %q", l.Prefix, l.Shared, l.Exclusive)
	}
	for _, s := range []string{l.Prefix, l.Exclusive, l.Shared} {
		switch {
		case len(s) > maxNameSize || !utf8.ValidString(s) || strings.ContainsRune(s, '/') || strings.ContainsFunc(s, forbidden):
			return bad("%q cannot be part of the name of a znode", s)
		case s != "" && s != l.Prefix && strings.Trim(s, "0123456789") == "":
			return bad("marker %q is a number", s)
		}
	}
	return nil
}

// knownName returns the name of an entry with this prefix that is also the name of an entry in
// a known layout, and that layout. It returns "" if there is none. Other clients and tools would
// take such an entry for one of that layout.
func (l Layout) knownName(prefix string) (string, Layout) {
	for _, marker := range []string{l.Exclusive, l.Shared} {
		name := prefix + marker + "0000000000"
		if e, class := queue.ParseName(name); marker != "" && class != queue.Foreign {
			return name, Layout{kind: e.Layout}
		}
	}
	return "", Layout{}
}

// hasMarker reports whether s contains one of the markers.
func (l Layout) hasMarker(s string) bool {
	return l.Exclusive != "" && strings.Contains(s, l.Exclusive) || l.Shared != "" && strings.Contains(s, l.Shared)
}

// isAmbiguous reports whether a reader's entry with this prefix would be parsed as
// something else, because the end of the prefix and the marker form the other marker.
func (l Layout) isAmbiguous(prefix string) bool {
	markers := Layout{Exclusive: l.Exclusive, Shared: l.Shared}
	e, class := markers.names("").Parse(prefix + l.Shared + "0000000000")
	return l.Shared != "" && (class != queue.Contender || e.Kind != queue.Shared)
}

// queueComponent returns the component for a queue with this name in the layout of the
// client.
func (c *Client) queueComponent(name string, kind queue.Kind, writer bool) (component, error) {
	layout := c.opts.Layout
	mode := Exclusive
	if kind == queue.Shared {
		mode = Shared
	}
	path, err := parseName(name, c.opts.Layout)
	p := component{path: path, mode: mode, member: queue.Member{
		Path: path, Kind: kind, Writer: writer, AllowForeign: c.opts.AllowForeignMutex, Names: layout.names(""),
	}}
	if err != nil || !layout.InParent {
		return p, err
	}
	last := path[strings.LastIndexByte(path, '/')+1:]
	switch {
	case len(path) == len(last)+1:
		return p, fmt.Errorf("%w: the znodes of a lock cannot be at the root; name a parent and the lock below it", ErrInvalidName)
	case layout.hasMarker(layout.Prefix + last), layout.isAmbiguous(layout.Prefix + last):
		return p, fmt.Errorf("%w: %q contains a marker of the layout, and would be parsed as another lock", ErrInvalidName, last)
	}
	if name, known := layout.knownName(layout.Prefix + last); name != "" {
		return p, fmt.Errorf("%w: entries such as %q would have names of %s; use another name or marker",
			ErrInvalidName, name, known)
	}
	p.member.Path = strings.TrimSuffix(path, "/"+last)
	p.member.Names = layout.names(last)
	return p, nil
}
