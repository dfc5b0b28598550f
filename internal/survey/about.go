package survey

import (
	"path"
	"strings"

	"github.com/zklock/zklock/internal/queue"
)

// part says what in a lock a znode is.
type part uint8

const (
	partOther  part = iota // of no lock that is known
	partEntry              // an entry of a queue, or the one znode
	partGate               // an entry at a semaphore's gate
	partLease              // a permit
	partLeases             // the parent of the permits
	partRecord             // a lock delay's record
	partStray              // beside the entries of a lock that is known
)

// about is of which lock a znode is a part.
type about struct {
	part  part
	lock  string
	entry queue.Entry // of entries
}

// about tells of which lock the znode at a path is a part, by the path alone and what
// is known by now. The mutex is held.
func (s *Survey) about(node string) about {
	parent, name := path.Split(node)
	parent = strings.TrimSuffix(parent, "/")
	above, base := path.Dir(parent), path.Base(parent)
	if t := s.tracks[node]; t != nil && t.lock != nil && t.lock.Kind == Node {
		return about{partEntry, node, queue.Entry{Name: name}}
	}
	if isRecord(parent, name) {
		return about{part: partRecord}
	}
	e, class := s.names().Parse(name)
	if class == queue.Contender && s.layout.InParent {
		if own, ok := s.nameIn(name); ok {
			return about{partEntry, parent + "/" + own, e}
		}
		return about{}
	}
	if s.custom() && class != queue.Contender {
		e, class = queue.ParseName(name) // of semaphores
		if base != "leases" && base != "locks" {
			class = queue.Foreign
		}
	}
	nameless := parent == "" || parent == namesRoot // there, all names are like others
	switch {
	case class == queue.Contender && base == "leases" && e.Lease() && plausible(above):
		return about{partLease, above, e}
	case class == queue.Contender && base == "locks" && s.semaphores[above]:
		return about{partGate, above, e}
	case class == queue.Contender && !nameless:
		return about{partEntry, parent, e}
	case name == "leases" && !nameless:
		return about{part: partLeases, lock: parent}
	}
	if t := s.tracks[parent]; t != nil && t.lock != nil && !s.semaphores[parent] {
		return about{part: partStray, lock: parent}
	}
	return about{}
}

// plausible reports whether there may be a semaphore at a path.
func plausible(path string) bool { return path != "/" && path != namesRoot }
