package survey

import (
	"path"
	"strings"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/internal/queue"
)

// The libraries whose entries can be told apart.
const (
	libZklock  = "zklock"
	libCurator = "Curator"
	libKazoo   = "kazoo"
	libGo      = "go-zookeeper"
	libApache  = "ZooKeeper" // the recipes in its source
)

// What an entry is in its library's terms.
const (
	kindMutex  = "mutex"
	kindReader = "reader"
	kindWriter = "writer"
	kindPermit = "permit"
	kindGate   = "gate" // of a semaphore
	kindLatch  = "latch"
	kindLock   = "lock"      // kazoo's Lock, WriteLock or Election
	kindRead   = "read lock" // kazoo's
	kindWrite  = "WriteLock" // ZooKeeper's
	kindNode   = "node"      // the lock is this znode
	kindCustom = "entry"     // of a Recipe of somebody's own
)

// A Recipe says who wrote an entry, as far as its name and data tell.
type Recipe struct {
	Library string `json:"library,omitempty"` // empty if it can't be told
	Kind    string `json:"kind,omitempty"`    // in the library's terms; empty for strays
}

// String is the recipe for people: a dash if nothing is known.
func (r Recipe) String() string {
	if text := strings.TrimSpace(r.Library + " " + r.Kind); text != "" {
		return text
	}
	return "-"
}

// markers are what stands before the sequence number. Where one is part of
// another, the longer one comes first.
func markers() [7][2]string {
	return [7][2]string{
		{"-lock-", kindMutex}, {"-__READ__", kindReader}, {"-__WRIT__", kindWriter},
		{"-lease-", kindPermit}, {"-latch-", kindLatch},
		{"__rlock__", kindRead}, {"__lock__", kindLock},
	}
}

// RecipeOf tells the recipe of an entry.
func RecipeOf(e zklock.Entry) Recipe {
	r := Recipe{}
	switch {
	case e.Mode == zklock.Stray && claimed(e):
		r.Kind = kindCustom
	case e.Mode == zklock.Stray:
		return r
	case e.Node == e.Path:
		r.Kind = kindNode
	default:
		r = named(e.Name)
	}
	if e.Mode == zklock.Permit && r.Kind == kindMutex {
		r.Kind = kindGate
	}
	if e.Owner != (zklock.Owner{}) {
		r.Library = libZklock
	}
	return r
}

// named tells the Recipe by an entry's name alone. zklock writes the names of
// whichever library the layout says.
func named(name string) Recipe {
	for _, m := range markers() {
		i := strings.LastIndex(name, m[0])
		if i < 0 {
			continue
		}
		r := Recipe{Kind: m[1]}
		switch id, protected := strings.CutPrefix(name[:i], "_c_"); {
		case m[1] == kindLock || m[1] == kindRead:
			r.Library = libKazoo
		case protected && len(id) == 36:
			r.Library = libCurator
		case protected && len(id) == 32 && m[1] == kindMutex:
			r.Library = libGo
		}
		return r
	}
	if e, class := queue.ParseName(name); class != queue.Foreign && e.Layout == queue.WriteLock {
		return Recipe{Library: libApache, Kind: kindWrite}
	}
	return Recipe{Kind: kindCustom}
}

// kazooName reports whether the entry has a name that kazoo looks for.
func (r Recipe) kazooName() bool { return r.Kind == kindLock || r.Kind == kindRead }

// readWrite reports whether the entry is of Curator's read-write lock.
func (r Recipe) readWrite() bool { return r.Kind == kindReader || r.Kind == kindWriter }

// curatorName reports whether the entry is named as one of Curator's locks.
func (r Recipe) curatorName() bool { return r.Kind == kindMutex || r.readWrite() }

// shared reports whether the entry is a reader's, of whatever library.
func (r Recipe) shared() bool { return r.Kind == kindReader || r.Kind == kindRead }

// leased reports whether the entry is a permit, not a place at the gate.
func leased(e zklock.Entry) bool {
	return e.Mode == zklock.Permit && path.Base(path.Dir(e.Node)) == "leases"
}
