package sim

import (
	"math/rand/v2"
	"strings"
	"time"

	"github.com/zklock/zklock/internal/queue"
)

// family says which kinds of claims share a lock.
type family uint8

const (
	queues     family = iota // mutexes, writers, readers
	semaphores               // permits
	nodeLocks                // one znode
)

// A LockConfig is one lock of a world's.
type LockConfig struct {
	Path   string
	Family family
	// Names are those of a queue. Where they are a recipe's own and several locks
	// do not share the parent, each client has a prefix of its own.
	Names queue.Names
	// Mutexes, Writers and Readers are how often each is wanted of a queue,
	// against each other.
	Mutexes, Writers, Readers int
	// Of is how many permits a semaphore has. Quarrel makes some clients believe
	// that there is one more.
	Of      int
	Quarrel bool
}

// drawLocks draws a world's locks. Some share a parent, some are another's child.
func drawLocks(r *rand.Rand, n int) []LockConfig {
	paths := []string{"/locks/a", "/locks/b", "/locks/b/deep/c", "/locks/d", "/deep/in/e"}
	var locks []LockConfig
	for i := range n {
		l := LockConfig{Path: paths[i]}
		switch r.IntN(8) {
		case 0, 1:
			l.Family, l.Of, l.Quarrel = semaphores, 1+r.IntN(4), r.IntN(4) == 0
		case 2:
			l.Family, l.Path = nodeLocks, "/locks/node"+string(rune('0'+i)) // has no children
		default:
			drawQueue(r, &l, i)
		}
		locks = append(locks, l)
	}
	return locks
}

// drawQueue draws a queue's names, and what is wanted of it.
func drawQueue(r *rand.Rand, l *LockConfig, i int) {
	switch r.IntN(3) {
	case 0:
		l.Mutexes = 1
	case 1:
		l.Writers, l.Readers = 1, 1+r.IntN(3)
	case 2:
		l.Mutexes, l.Writers, l.Readers = 1, 1, 2
	}
	switch r.IntN(8) {
	case 0:
		l.Names.Layout = queue.Kazoo
	case 1:
		l.Names.Layout = queue.Mixed
	case 2: // the textbook's names
		l.Names = queue.Names{Layout: queue.Custom, Exclusive: "-W-", Shared: "-R-"}
	case 3: // several locks in one parent
		l.Path = "/locks/printers"
		l.Names = queue.Names{Layout: queue.Custom, Prefix: "p" + string(rune('0'+i)), Exclusive: "_lock_", Shared: "_rlock_", Only: true}
	case 4:
		if l.Readers == 0 {
			l.Names.Layout = queue.Latch
		}
	}
}

// lock is one lock, and what was granted of it.
type lock struct {
	LockConfig
	n        int
	dirs     []string // whose children are its entries
	written  int64    // the highest token of an exclusive hold
	maxToken int64    // of any hold
	last     string   // the client that had that
	traces   []*trace
	taints   []taint
	// amiss is until when the lock's own clients may delete another client's znode by its
	// name, because an operator has deleted theirs.
	amiss time.Duration
	// open is until when several clients may have a semaphore's gate, because an operator
	// has deleted the entry of one that was about to write the number of permits.
	open     time.Duration
	fenced   int64 // the token last written under a guard
	resource string
	// gateAsked is set if a waiter at a semaphore's gate received a release request.
	gateAsked bool
	bans      []*ban
	// jumped says that its numbers were once made to come near their limit; worn
	// are the queues where they still are, by path, with their czxid.
	jumped bool
	worn   map[string]int64
}

func newLock(cfg LockConfig, n int) *lock {
	l := &lock{LockConfig: cfg, n: n, dirs: []string{cfg.Path}, resource: resources + "/" + string(rune('0'+n)), worn: map[string]int64{}}
	if l.Family == semaphores {
		l.dirs = []string{cfg.Path + "/locks", cfg.Path + "/leases"}
	}
	return l
}

// names are those that a client uses.
func (l *lock) names(c *client) queue.Names {
	n := l.Names
	if n.Layout == queue.Custom && !n.Only {
		n.Prefix = "host" + string(rune('0'+c.machine.n))
	}
	return n
}

// byID reports whether a znode of the lock's is known by the id in its data.
func (l *lock) byID() bool { return l.Family == nodeLocks || l.Names.Layout == queue.Custom }

// entry takes a path apart, if it is one of the lock's: where its turn is, and
// whether it is a shared one. This is the world's own reading of the names.
func (l *lock) entry(p string) (seq string, shared, ok bool) {
	if l.Family == nodeLocks {
		return "", false, p == l.Path
	}
	for _, dir := range l.dirs {
		if len(p) < len(dir)+12 || p[:len(dir)] != dir || p[len(dir)] != '/' {
			continue
		}
		name := p[len(dir)+1:]
		if strings.IndexByte(name, '/') >= 0 {
			return "", false, false
		}
		name, seq = name[:len(name)-10], name[len(name)-10:]
		if strings.Trim(seq, "0123456789") != "" {
			return "", false, false
		}
		shared, ok = l.marked(name)
		return seq, shared, ok
	}
	return "", false, false
}

// marked reads what stands before the sequence number.
func (l *lock) marked(name string) (shared, ok bool) {
	if n := l.Names; n.Layout == queue.Custom {
		switch {
		case n.Only:
			return name == n.Prefix+n.Shared, name == n.Prefix+n.Shared || name == n.Prefix+n.Exclusive
		case strings.HasSuffix(name, n.Shared):
			return true, true
		}
		return false, strings.HasSuffix(name, n.Exclusive)
	}
	for _, mark := range []string{"-__READ__", "__rlock__"} {
		if strings.HasSuffix(name, mark) {
			return true, true
		}
	}
	for _, mark := range []string{"-lock-", "-__WRIT__", "__lock__", "-latch-", "-lease-"} {
		if strings.HasSuffix(name, mark) {
			return false, true
		}
	}
	return false, false
}

// lockOf finds the lock that a path is an entry of.
func (w *World) lockOf(p string) *lock {
	for _, l := range w.locks {
		if _, _, ok := l.entry(p); ok {
			return l
		}
	}
	return nil
}

// entries lists what znodes of locks there are on the server.
func (w *World) entries() []string {
	var all []string
	for _, p := range w.server.tree.Paths() {
		if w.lockOf(p) != nil {
			all = append(all, p)
		}
	}
	return all
}

// A taint is a znode of a lock whose data no longer show that it is a zklock client's: no
// reader is granted next to it.
type taint struct {
	path   string
	goneAt time.Duration // 0: it is there
}

// tainted reports whether there was such a znode at some time since then.
func (l *lock) tainted(since time.Duration) bool {
	for _, t := range l.taints {
		if t.goneAt == 0 || t.goneAt >= since {
			return true
		}
	}
	return false
}

// checkTaints notes which of them have gone, and forgets those long gone.
func (w *World) checkTaints() {
	for _, l := range w.locks {
		n := 0
		for _, t := range l.taints {
			if !w.there(t.path) {
				if t.goneAt == 0 {
					t.goneAt = w.now
				}
			} else {
				t.goneAt = 0
			}
			if t.goneAt == 0 || w.now < t.goneAt+10*w.cfg.Timeout+time.Minute {
				l.taints[n] = t
				n++
			}
		}
		l.taints = l.taints[:n]
	}
}

// there reports whether a znode is on the server.
func (w *World) there(p string) bool {
	_, _, ok := w.server.tree.Get(p)
	return ok
}
