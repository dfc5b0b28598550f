package inspect

import (
	"path"
	"strings"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/internal/queue"
)

// role tells what part of a lock a znode is.
type role uint8

const (
	roleNone   role = iota // not part of a known lock
	roleEntry              // an entry of a queue, or the znode of a node lock
	roleGate               // an entry at a semaphore's gate
	roleLease              // a permit of a semaphore
	roleLeases             // the parent of the permits
	roleRecord             // a lock-delay record
	roleStray              // a child of a known lock that is not an entry
)

// nodeRole tells which lock a znode belongs to, and its role there.
type nodeRole struct {
	role  role
	lock  string
	entry queue.Entry // for entries
}

// Strangers choose the names of znodes, which can have a megabyte.
const (
	maxPath = len(namesRoot+"/") + 512 // length of the longest path of a lock
	maxName = 2 << 10                  // names of entries in a known or custom layout are shorter
)

// tooLong reports whether no lock can be at a path, or below it, because of its length.
func tooLong(path string) bool { return len(path) > maxPath }

// roleOf returns the role of the znode at a path, from the path and the known locks only.
// The caller holds the mutex.
func (s *Watcher) roleOf(node string) nodeRole {
	parent, name := path.Split(node)
	parent = strings.TrimSuffix(parent, "/")
	above, base := path.Dir(parent), path.Base(parent)
	if t := s.tracks[node]; t != nil && t.lock != nil && t.lock.Kind == KindNode {
		return nodeRole{roleEntry, node, queue.Entry{Name: name}}
	}
	if isRecord(parent, name) {
		return nodeRole{role: roleRecord, lock: strings.TrimSuffix(parent, queue.Held(""))}
	}
	e, class := s.names().Parse(name)
	if class == queue.Contender && s.layout.InParent {
		if own, ok := s.lockName(name); ok {
			return nodeRole{roleEntry, parent + "/" + own, e}
		}
		return nodeRole{}
	}
	if s.custom() && class != queue.Contender {
		e, class = queue.ParseName(name) // entries of semaphores
		if base != "leases" && base != "locks" {
			class = queue.Foreign
		}
	}
	nameless := parent == "" || parent == namesRoot // there, leases and locks are ordinary names
	switch {
	case class == queue.Contender && base == "leases" && e.Lease() && mayBeLock(above):
		return nodeRole{roleLease, above, e}
	case class == queue.Contender && base == "locks" && s.hasLeases(above):
		return nodeRole{roleGate, above, e}
	case class == queue.Contender && s.isKazooGate(parent):
		return nodeRole{roleGate, strings.TrimSuffix(parent, kazooGate), e}
	case class == queue.Contender && !nameless:
		return nodeRole{roleEntry, parent, e}
	case name == "leases" && !nameless:
		return nodeRole{role: roleLeases, lock: parent}
	}
	if t := s.tracks[parent]; t != nil && (t.lock != nil || s.omitted[parent] != nil) && !t.semaphore || !nameless && kazooPermitName(name) {
		return nodeRole{role: roleStray, lock: parent}
	}
	return nodeRole{}
}

// queueEntry returns an entry as roleOf parses the name of its znode.
func (s *Watcher) queueEntry(e Entry) queue.Entry {
	if e.Node == e.Path {
		return queue.Entry{Name: e.Name}
	}
	parsed, class := s.names().Parse(e.Name)
	if s.custom() && class != queue.Contender {
		parsed, _ = queue.ParseName(e.Name)
	}
	return parsed
}

// isKazooGate reports whether a path is the gate of a semaphore of kazoo that the watcher
// shows, and no lock. The caller holds the mutex.
func (s *Watcher) isKazooGate(path string) bool {
	t := s.kazooSemaphore(path)
	return t != nil && t.lock.hasKazooGate()
}

// kazooSemaphore returns the semaphore of kazoo that has its gate at a path, or nil if the watcher
// shows none. The caller holds the mutex.
func (s *Watcher) kazooSemaphore(gate string) *track {
	base, ok := strings.CutSuffix(gate, kazooGate)
	if t := s.tracks[base]; ok && t != nil && t.lock.isKazooSemaphore() {
		return t
	}
	return nil
}

// isKazooPermit reports whether a znode is a permit of a semaphore of kazoo that the watcher
// shows. The caller holds the mutex.
func (s *Watcher) isKazooPermit(node string) bool {
	t := s.tracks[path.Dir(node)]
	if t == nil || !t.lock.isKazooSemaphore() {
		return false
	}
	i, known := t.index().byNode[node]
	return known && t.lock.Entries[i].Mode != zklock.Stray
}

// isSemaphore reports whether the entries in the queue at a path wait at a gate. The caller
// holds the mutex.
func (s *Watcher) isSemaphore(path string) bool {
	t := s.tracks[path]
	return t != nil && (t.semaphore || t.lock.isKazooSemaphore())
}

// hasLeases reports whether a path is known to have a child named leases. The caller holds the
// mutex.
func (s *Watcher) hasLeases(path string) bool {
	t := s.tracks[path]
	return t != nil && t.semaphore
}

// mayBeLock reports whether a queue or a semaphore can be at a path.
func mayBeLock(path string) bool { return path != "/" && path != namesRoot }
