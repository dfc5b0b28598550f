package survey

import (
	"slices"
	"strings"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/internal/queue"
)

// namesRoot is where names without a slash live.
const namesRoot = "/zklock"

// candidate is a path at which a lock may be, and the client that knows its kind.
type candidate struct {
	path   string
	client *zklock.Client
}

// candidates are the paths of locks that may be at path, a znode with children. To
// look closely at all that is there would read every znode of the servers.
func (r *Reader) candidates(path string, children []string) []candidate {
	switch {
	case path == "/":
		return nil
	case r.layout.InParent:
		return r.inParent(path, children)
	case path == namesRoot:
		return nil // there, "locks" and "leases" are names like others
	}
	if slices.Contains(children, "leases") || slices.ContainsFunc(children, r.isEntry) {
		return []candidate{{path, r.own}}
	}
	return nil
}

// inParent are the locks in a parent of several.
func (r *Reader) inParent(path string, children []string) []candidate {
	var locks []string
	for _, child := range children {
		if name, ok := r.nameIn(child); ok {
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

// nameIn is the name of the lock whose entry, in a parent of several, has this name.
func (r *Reader) nameIn(child string) (string, bool) {
	e, class := r.names().Parse(child)
	if class != queue.Contender {
		return "", false
	}
	name, ours := strings.CutPrefix(child[:len(child)-sequenceDigits-len(e.Marker)], r.layout.Prefix)
	return name, ours && name != ""
}

// names are those of any entry in the layout.
func (r *Reader) names() queue.Names {
	if !r.custom() {
		return queue.Names{}
	}
	return namesOf(r.layout)
}

// isEntry reports whether a child may stand in a queue.
func (r *Reader) isEntry(child string) bool {
	_, class := r.names().Parse(child)
	return class != queue.Foreign
}

// isContender reports whether a child of a semaphore's parents is a permit's or a waiter's.
func isContender(child string) bool {
	_, class := queue.ParseName(child)
	return class == queue.Contender
}

// isRecord reports whether a child is a lock delay's record.
func isRecord(parent, child string) bool {
	if !strings.HasSuffix(parent, heldSuffix) {
		return false
	}
	_, class := queue.ParseName(child + "0000000000")
	return class == queue.Contender
}
