package sim

import (
	"math/rand/v2"
	"strings"
	"time"

	"github.com/zklock/zklock/internal/queue"
)

// family is a group of claims that share a lock.
type family uint8

const (
	queues     family = iota // mutexes, writers, readers
	semaphores               // permits
	nodeLocks                // one znode
)

// A LockConfig configures a lock of a world.
type LockConfig struct {
	Path   string
	Family family
	// Names are the names of a queue. With custom names, each client has its own prefix,
	// unless several locks share the parent.
	Names queue.Names
	// Mutexes, Writers, and Readers are the relative frequencies of claims of a queue.
	Mutexes, Writers, Readers int
	// Of is the number of permits of a semaphore. WrongSize makes some clients claim that
	// there is one more.
	Of        int
	WrongSize bool
}

// drawLocks draws a world's locks. Some share a parent, and some are below another lock.
func drawLocks(r *rand.Rand, n int) []LockConfig {
	paths := []string{"/locks/a", "/locks/b", "/locks/b/deep/c", "/locks/d", "/deep/in/e"}
	var locks []LockConfig
	for i := range n {
		l := LockConfig{Path: paths[i]}
		switch r.IntN(8) {
		case 0, 1:
			l.Family, l.Of, l.WrongSize = semaphores, 1+r.IntN(4), r.IntN(4) == 0
		case 2:
			l.Family, l.Path = nodeLocks, "/locks/node"+string(rune('0'+i)) // has no children
		default:
			drawQueue(r, &l, i)
		}
		locks = append(locks, l)
	}
	return locks
}

// drawQueue draws a queue's names and the kinds of its claims.
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

// lock is a lock and the history of its grants.
type lock struct {
	LockConfig
	n        int
	dirs     []string // the parents of its entries
	written  int64    // the highest token of an exclusive hold
	maxToken int64    // of any hold
	last     string   // the znode with maxToken
	traces   []*trace
	taints   []taint
	// wrongDeletes is the time until which a client may delete another client's znode with a reused
	// name, because an operator has deleted its own znode.
	wrongDeletes time.Duration
	// gateOpen is the time until which several clients may hold a semaphore's gate, because an
	// operator has deleted the entry of a client that was about to write the number of permits.
	gateOpen time.Duration
	fenced   int64 // the token of the last guarded write
	resource string
	// gateRevoked is set if a waiter at a semaphore's gate received a release request.
	gateRevoked bool
	bans        []*ban
	// jumped is set after the first jump of its sequence numbers. exhausted has the czxids of the
	// queues whose numbers are still near the limit.
	jumped    bool
	exhausted map[string]int64
}

func newLock(cfg LockConfig, n int) *lock {
	l := &lock{LockConfig: cfg, n: n, dirs: []string{cfg.Path}, resource: resources + "/" + string(rune('0'+n)), exhausted: map[string]int64{}}
	if l.Family == semaphores {
		l.dirs = []string{cfg.Path + "/locks", cfg.Path + "/leases"}
	}
	return l
}

// names returns the names that a client uses.
func (l *lock) names(c *client) queue.Names {
	n := l.Names
	if n.Layout == queue.Custom && !n.Only {
		n.Prefix = "host" + string(rune('0'+c.machine.n))
	}
	return n
}

// byID reports whether clients recognize their znodes by the ID in the data.
func (l *lock) byID() bool { return l.Family == nodeLocks || l.Names.Layout == queue.Custom }

// entry parses the path of an entry of the lock: its sequence number, and whether it is
// shared. It shares no code with the lock core.
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
		shared, ok = l.parseName(name)
		return seq, shared, ok
	}
	return "", false, false
}

// parseName parses a name without its sequence number.
func (l *lock) parseName(name string) (shared, ok bool) {
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

// lockOf returns the lock of an entry.
func (w *World) lockOf(p string) *lock {
	for _, l := range w.locks {
		if _, _, ok := l.entry(p); ok {
			return l
		}
	}
	return nil
}

// entries returns the entries of all locks on the server.
func (w *World) entries() []string {
	var all []string
	for _, p := range w.server.tree.Paths() {
		if w.lockOf(p) != nil {
			all = append(all, p)
		}
	}
	return all
}

// A taint is an entry whose data does not show that a zklock client created it. No reader is
// granted next to it.
type taint struct {
	path   string
	goneAt time.Duration // 0 if it exists
}

// tainted reports whether a taint existed at any time since then.
func (l *lock) tainted(since time.Duration) bool {
	for _, t := range l.taints {
		if t.goneAt == 0 || t.goneAt >= since {
			return true
		}
	}
	return false
}

// checkTaints notes which taints are gone, and removes old ones.
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
