package survey

import (
	"strings"
	"time"

	"github.com/zklock/zklock"
)

// A Kind is what a lock on the servers is.
type Kind string

// The kinds of locks.
const (
	Queue     Kind = "queue"     // mutexes, readers, writers
	Semaphore Kind = "semaphore" // permits and a gate
	Node      Kind = "node"      // one ephemeral znode
)

// A Lock is what was read of one lock. It does not change once it is handed out:
// those who share it must not change it either.
type Lock struct {
	Path    string
	Kind    Kind
	Layout  zklock.Layout // of its entries, where only their owners tell it, as in [ErrLayout]
	Layouts []string      // recipes of its entries, as "Curator mutex", sorted
	Permits int           // that a semaphore has; 0 if nobody wrote it
	Entries []Entry       // the holders, the waiters in turn, then strays
	// Vanished counts the holders and waiters with a lock delay that left without
	// a release. Only [LookClosely] looks for them.
	Vanished int
	// Warnings say what on the lock's path does not do what its users may think.
	Warnings []string
	// Version is the snapshot's in which the lock became as it is; 0 outside of a
	// [Survey].
	Version uint64
}

// An Entry is one entry of a lock.
type Entry struct {
	zklock.Entry
	Recipe Recipe
	// Turn is the place in line of an entry that waits, from 1; 0 of one that
	// holds, and -1 of a stray. Entries that one attempt made have one turn.
	Turn int
	// Granted is when the entry was seen to get the lock, by this machine's clock;
	// zero if it held when it was first seen, or does not hold. Outside of a
	// [Survey] it is zero.
	Granted time.Time
}

// Certain returns ErrLayout if the lock's entries are arranged as their owners say, which
// is no ground to act on.
func (l *Lock) Certain() error {
	if l.Layout != (zklock.Layout{}) {
		return ErrLayout
	}
	return nil
}

// Contenders are the entries without the strays.
func (l *Lock) Contenders() []Entry {
	return l.which(func(e Entry) bool { return e.Mode != zklock.Stray })
}

// Holders are the entries that hold: of a semaphore, one for each permit.
func (l *Lock) Holders() []Entry {
	return l.which(func(e Entry) bool { return e.Holder })
}

// which returns the entries for which this is true, in their order.
func (l *Lock) which(is func(Entry) bool) []Entry {
	var all []Entry
	for _, e := range l.Entries {
		if is(e) {
			all = append(all, e)
		}
	}
	return all
}

// Waiting counts those who wait.
func (l *Lock) Waiting() int {
	n := 0
	for _, e := range l.Entries {
		n = max(n, e.Turn)
	}
	return n
}

// KazooPermits counts what look like permits of kazoo's Semaphore, which to all
// others are strays.
func (l *Lock) KazooPermits() int {
	n := 0
	for _, e := range l.Entries {
		if e.Mode == zklock.Stray && e.Session != 0 && len(e.Name) == 32 && strings.Trim(e.Name, "0123456789abcdef") == "" {
			n++
		}
	}
	return n
}

// Together reports whether one attempt made both entries of a queue, as in the
// mixed layout. They are next to each other.
func Together(a, b zklock.Entry) bool {
	return a.Session == b.Session && a.Session != 0 && a.Token == b.Token && a.Token != 0
}

// Once leaves the first entry of each attempt: a hold of several permits, or in
// the mixed layout, has several.
func Once(entries []Entry) []Entry {
	type attempt struct{ session, token int64 }
	seen := map[attempt]bool{}
	var first []Entry
	for _, e := range entries {
		a := attempt{e.Session, e.Token}
		if e.Session == 0 || !seen[a] {
			first = append(first, e)
		}
		seen[a] = true
	}
	return first
}

// Differing counts the sessions of entries: holders rather than entries, of which
// one of several permits, or in the mixed layout, has more than one.
func Differing(entries []Entry) int {
	sessions := map[int64]bool{}
	for _, e := range entries {
		sessions[e.Session] = true
	}
	return len(sessions)
}

// bytes is about what the lock takes in memory.
func (l *Lock) bytes() int {
	const entry = 512
	n := entry + len(l.Path)
	for i := range l.Entries {
		e := &l.Entries[i]
		n += entry + len(e.Node) + len(e.Name) + len(e.Data) + len(e.Owner.Host) + len(e.Owner.User) + len(e.Owner.Command)
	}
	return n
}
