package inspect

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/internal/legible"
	"github.com/zklock/zklock/internal/queue"
)

// This file says which locks may be held although a snapshot does not have them.

// Omitted returns why the lock at path is not in the snapshot although it may have a holder: the
// watcher could not read it after a change. It returns nil for other paths.
func (s *Snapshot) Omitted(path string) error { return s.omitted[path] }

// Unknown returns why the lock at this path may have a holder or a waiter although the snapshot does
// not have it: it is outside the watcher's prefix, the watcher could not read it or a znode above
// it, or has not found all locks. It returns nil for a lock of the snapshot, and for one that is
// known to have none. It cannot know of a lock that was created without permission to read it since
// the last listing.
func (s *Snapshot) Unknown(at string) error {
	prefix := strings.TrimSuffix(s.Status.Prefix, "/")
	below, inside := strings.CutPrefix(at, prefix)
	switch {
	case s.Lock(at) != nil:
		return nil
	case s.isGate(at):
		return errGate
	case !inside || below != "" && below[0] != '/':
		return errors.New("it is not below " + legible.Path(s.Status.Prefix))
	case s.Status.Complete:
		return nil
	}
	// A listing that cannot read the znodes of a semaphore omits the semaphore.
	for _, from := range []string{queue.LeasesPath(at), queue.GatePath(at)} {
		for above := from; ; above = path.Dir(above) {
			for _, paths := range []map[string]error{s.omitted, s.unlisted} {
				if why := paths[above]; why != nil {
					return fmt.Errorf("%w: %s", why, legible.Path(above))
				}
			}
			if above == "/" {
				break
			}
		}
	}
	if s.partial {
		return errors.New(cmp.Or(s.Status.Reason, "the locks were not listed yet"))
	}
	return nil
}

// errGate means that the entries at a path count as the waiters of a semaphore. The entries of a
// lock have the same names.
var errGate = errors.New("its entries count as the waiters of a semaphore")

// isGate reports whether the snapshot shows entries at the path as the waiters of a semaphore.
func (s *Snapshot) isGate(at string) bool {
	of := path.Dir(at)
	if base, ok := strings.CutSuffix(at, kazooGate); ok {
		of = base
	} else if queue.GatePath(of) != at {
		return false
	}
	l := s.Lock(of)
	return l != nil && slices.ContainsFunc(l.Entries, func(e Entry) bool {
		return e.Mode == zklock.Permit && path.Dir(e.Node) == at
	})
}

// omittedReason returns why locks are omitted. The caller holds the mutex.
func (s *Watcher) omittedReason() string {
	first := slices.Min(slices.Collect(maps.Keys(s.omitted)))
	return fmt.Sprintf("%v: %s, first %s; their locks are omitted", s.omitted[first], count(len(s.omitted), "path"), legible.Path(first))
}
