package zklock

import (
	"path"
	"slices"
	"strings"

	"github.com/zklock/zklock/internal/queue"
)

// A part is one lock as the servers have it: a queue, a semaphore, or a node
// lock. All has several, every other lock one.
type part struct {
	path      string // what Lock.Path says of it
	mode      Mode
	member    queue.Member    // of a queue
	semaphore queue.Semaphore // if the mode is Permit
	node      bool            // of a node lock, whose znode is path
}

// key tells what a part contends for: parts of one key exclude each other.
func (p part) key() string {
	switch {
	case p.mode == Permit:
		return "semaphore " + p.semaphore.Path
	case p.node:
		return "node " + p.path
	}
	return "queue " + p.queue()
}

// queue is the queue's path; where one parent has several, its name is added.
func (p part) queue() string {
	if p.member.Names.Only {
		return path.Join(p.member.Path, p.member.Names.Prefix)
	}
	return p.member.Path
}

// znodes are the paths that the part uses. No two parts of one lock may share
// any: the lock would wait for itself.
func (p part) znodes() []string {
	if p.mode == Permit {
		return []string{p.path, gateOf(p.path), leasesOf(p.path)}
	}
	return []string{p.path}
}

// owns reports whether a znode with this path is one of the part's entries.
func (p part) owns(node string) bool {
	dir, base := path.Dir(node), path.Base(node)
	switch {
	case p.node:
		return node == p.path
	case p.mode == Permit:
		return dir == leasesOf(p.path) || dir == gateOf(p.path)
	case dir != p.member.Path:
		return false
	}
	_, class := p.member.Names.Parse(base)
	return class == queue.Contender
}

// spec says what the core shall acquire.
func (l *Lock) spec(try bool, data []byte) queue.Spec {
	s := queue.Spec{InOrder: l.inOrder, Try: try, Data: data, Delay: l.client.opts.LockDelay}
	for _, p := range l.parts {
		switch {
		case p.node:
			s.Node = p.path
		case p.mode == Permit:
			s.Semaphores = append(s.Semaphores, p.semaphore)
		default:
			s.Members = append(s.Members, p.member)
		}
	}
	// One order for everybody, so that two of them never wait for each other.
	slices.SortFunc(s.Semaphores, func(a, b queue.Semaphore) int { return strings.Compare(a.Path, b.Path) })
	return s
}

// apart reports whether the lock is several semaphores: each is taken in a
// transaction of its own, and no queue stands for them.
func (l *Lock) apart() bool {
	return len(l.parts) > 1 && !slices.ContainsFunc(l.parts, func(p part) bool { return p.mode != Permit })
}

// partOf returns the lock's part that a znode is an entry of.
func (l *Lock) partOf(node string) (part, bool) {
	i := slices.IndexFunc(l.parts, func(p part) bool { return p.owns(node) })
	if i < 0 {
		return part{}, false
	}
	return l.parts[i], true
}

// partWith returns the lock's part that a lock-delay's record belongs to.
func (l *Lock) partWith(record string) part {
	i := slices.IndexFunc(l.parts, func(p part) bool { return queue.Held(p.path) == path.Dir(record) })
	if i < 0 {
		return part{}
	}
	return l.parts[i]
}

// modeOf returns what the part's entry with this path is; a record is a stray.
func (p part) modeOf(node string) Mode {
	switch {
	case !p.owns(node):
		return Stray
	case p.node || p.mode == Permit:
		return p.mode
	}
	if e, _ := p.member.Names.Parse(path.Base(node)); e.Kind == queue.Shared {
		return Shared
	}
	return Exclusive
}

// writer reports whether the lock is a read-write lock's writer and no more.
func (l *Lock) writer() bool {
	return !l.all && l.parts[0].mode == Exclusive && l.parts[0].member.Writer
}

// nodeLock reports whether the lock is one znode with a fixed name.
func (l *Lock) nodeLock() bool { return !l.all && l.parts[0].node }

// namesakes reports whether a znode of the lock's may be deleted and another's come
// to the very same name: fixed names, and those of a layout without GUIDs.
func (l *Lock) namesakes() bool {
	return slices.ContainsFunc(l.parts, func(p part) bool {
		return p.node || p.mode != Permit && p.member.Names.Nameless()
	})
}
