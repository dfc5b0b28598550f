package inspect

import (
	"slices"
	"strings"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/internal/queue"
)

// namesRoot is the parent of locks whose names have no slash.
const namesRoot = "/zklock"

// candidate is a path that may be a lock, and the client that can read its kind.
type candidate struct {
	path   string
	client *zklock.Client
}

// candidates returns the paths at and below path that may be locks. children are the
// children of path. To read every znode closely would be too expensive.
func (r *Reader) candidates(path string, children []string) []candidate {
	switch {
	case path == "/":
		return nil
	case r.layout.InParent:
		return r.candidatesInParent(path, children)
	case path == namesRoot:
		return nil // there, "locks" and "leases" are ordinary names
	}
	if slices.Contains(children, "leases") || slices.ContainsFunc(children, r.isEntry) || len(children) > 0 && !slices.ContainsFunc(children, notKazooPermit) {
		return []candidate{{path, r.own}}
	}
	return nil
}

// candidatesInParent returns the locks in a parent with several locks.
func (r *Reader) candidatesInParent(path string, children []string) []candidate {
	var locks []string
	for _, child := range children {
		if name, ok := r.lockName(child); ok {
			locks = append(locks, strings.TrimSuffix(path, "/")+"/"+name)
		}
	}
	slices.Sort(locks)
	var found []candidate
	for _, lock := range slices.Compact(locks) {
		found = append(found, candidate{lock, r.own})
	}
	return found
}

// lockName returns the name of the lock that has this child as an entry, in a layout with
// several locks in one parent.
func (r *Reader) lockName(child string) (string, bool) {
	e, class := r.names().Parse(child)
	if class != queue.Contender {
		return "", false
	}
	name, ours := strings.CutPrefix(child[:len(child)-sequenceDigits-len(e.Marker)], r.layout.Prefix)
	return name, ours && name != ""
}

// names returns the entry names of the reader's layout.
func (r *Reader) names() queue.Names {
	if !r.custom() {
		return queue.Names{}
	}
	return namesOf(r.layout)
}

// isEntry reports whether a child's name is that of a queue entry.
func (r *Reader) isEntry(child string) bool {
	_, class := r.names().Parse(child)
	return class != queue.Foreign
}

// contends reports whether a child's name is that of a contender.
func (r *Reader) contends(child string) bool {
	_, class := r.names().Parse(child)
	return class == queue.Contender
}

// notKazooPermit reports whether a child is not a permit of kazoo's Semaphore.
func notKazooPermit(child string) bool { return !kazooPermitName(child) }

// isContender reports whether a child of a semaphore's parents is a permit or a waiter.
func isContender(child string) bool {
	_, class := queue.ParseName(child)
	return class == queue.Contender
}

// isRecord reports whether a child is a lock-delay record.
func isRecord(parent, child string) bool {
	return strings.HasSuffix(parent, queue.Held("")) && queue.IsRecord(child)
}
