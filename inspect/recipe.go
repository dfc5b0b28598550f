package inspect

import (
	"path"
	"slices"
	"strings"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/internal/queue"
)

// The libraries whose entries can be distinguished.
const (
	libZklock  = "zklock"
	libCurator = "Curator"
	libKazoo   = "kazoo"
	libGo      = "go-zookeeper"
	libApache  = "ZooKeeper" // recipes in its source code
)

// Kinds of entries, in the terms of their libraries.
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
	kindNode   = "node"      // the znode of a node lock
	kindCustom = "entry"     // in a custom layout
	kindParent = "parent"    // the znode of another lock, below this one
)

// A Recipe tells which library and recipe created an entry, as far as its name and data
// show.
type Recipe struct {
	Library string `json:"library,omitempty"` // empty if unknown
	Kind    string `json:"kind,omitempty"`    // in the library's terms; empty if the entry belongs to no lock
}

// String returns the recipe as text, or a dash if it is unknown.
func (r Recipe) String() string {
	if text := strings.TrimSpace(r.Library + " " + r.Kind); text != "" {
		return text
	}
	return "-"
}

// markers returns the texts before the sequence number. If one contains another, the longer
// one comes first.
func markers() [7][2]string {
	return [7][2]string{
		{"-lock-", kindMutex}, {"-__READ__", kindReader}, {"-__WRIT__", kindWriter},
		{"-lease-", kindPermit}, {"-latch-", kindLatch},
		{"__rlock__", kindRead}, {"__lock__", kindLock},
	}
}

// RecipeOf returns the recipe of an entry.
func RecipeOf(e zklock.Entry) Recipe {
	r := Recipe{}
	switch {
	case e.Mode == zklock.Stray && declaresLayout(e):
		r.Kind = kindCustom
	case e.Mode == zklock.Stray:
		r.Kind = otherLock(e)
		if r.Kind != kindNode {
			return r
		}
	case e.Node == e.Path:
		r.Kind = kindNode
	default:
		r = recipeOfName(e.Name)
	}
	if e.Mode == zklock.Permit && r.Kind == kindMutex {
		r.Kind = kindGate
	}
	if e.Owner != (zklock.Owner{}) {
		r.Library = libZklock
	}
	return r
}

// otherLock returns the kind of a stray that belongs to a lock below its path: kindNode for
// zklock's node lock, kindParent for the znode of another lock. It is empty for other strays.
func otherLock(e zklock.Entry) string {
	_, class := queue.ParseName(e.Name)
	switch {
	case class != queue.Foreign:
		return ""
	case e.Session != 0 && e.Owner != (zklock.Owner{}):
		return kindNode
	case e.Session == 0 && e.Parent && e.Data == "":
		return kindParent
	}
	return ""
}

// recipeOfName returns the recipe that an entry's name shows. zklock writes the names of
// the library that the layout selects.
func recipeOfName(name string) Recipe {
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

// IgnoresRequests reports whether the entry's client cannot see a release request, because
// its library does not read them. Revoke does not ask such a holder.
func (e Entry) IgnoresRequests() bool { return e.Token != 0 && !e.ReadsRequests() }

// KazooName reports whether kazoo waits for an entry of this recipe.
func (r Recipe) KazooName() bool { return r.Kind == kindLock || r.Kind == kindRead }

// readWrite reports whether the entry belongs to Curator's read-write lock.
func (r Recipe) readWrite() bool { return r.Kind == kindReader || r.Kind == kindWriter }

// CuratorName reports whether the entry has the name of a Curator lock.
func (r Recipe) CuratorName() bool { return r.Kind == kindMutex || r.readWrite() }

// curatorDowngrade returns a function that reports whether an entry of a queue is the reader of
// a Curator client that holds the writer. Before Curator 5.5.0, the reader of the writer's
// thread has a sequence number of its own, and holds whatever is between the two. Later, it has
// that of the writer.
func curatorDowngrade(entries []Entry) func(Entry) bool {
	i := slices.IndexFunc(entries, func(e Entry) bool { return e.Holder && e.Recipe == Recipe{libCurator, kindWriter} })
	if i < 0 {
		return func(Entry) bool { return false }
	}
	writer := entries[i]
	number := writer.Name[max(0, len(writer.Name)-sequenceDigits):]
	return func(e Entry) bool {
		return e.Session == writer.Session && e.Recipe == Recipe{libCurator, kindReader} && !strings.HasSuffix(e.Name, number)
	}
}

// downgradeOvertakes reports whether an exclusive entry is queued between the writer and the
// reader of one Curator client. Without one, the reader harms no client, and it can also be that
// of another thread, which waits.
func downgradeOvertakes(entries []Entry) bool {
	downgrading, between := curatorDowngrade(entries), false
	return slices.ContainsFunc(entries, func(e Entry) bool {
		between = between || e.Mode == zklock.Exclusive && !e.Holder
		return between && downgrading(e)
	})
}

// shared reports whether the entry is a reader's, of any library.
func (r Recipe) shared() bool { return r.Kind == kindReader || r.Kind == kindRead }

// leased reports whether the entry is a permit, and not an entry at the gate.
func leased(e zklock.Entry) bool {
	return e.Mode == zklock.Permit && (path.Base(path.Dir(e.Node)) == "leases" || kazooPermitName(e.Name))
}
