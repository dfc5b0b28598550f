package inspect

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
)

// A Kind tells how a lock is stored on the servers.
type Kind string

// The kinds of locks.
const (
	KindQueue     Kind = "queue"     // mutexes, readers, and writers
	KindSemaphore Kind = "semaphore" // permits, and a gate where clients wait
	KindNode      Kind = "node"      // a single ephemeral znode
)

// A Lock is one lock as it was read. It does not change after it was returned, and callers
// must not modify it, because they may share it.
type Lock struct {
	Path    string
	Kind    Kind
	Layout  zklock.Layout // the layout that the entries' data declare; see [ErrLayoutUnknown]
	Layouts []string      // recipes of the entries, for example "Curator mutex", sorted
	Permits int           // size of a semaphore; 0 if it is not stored
	Entries []Entry       // holders, then waiters in order, then strays
	// Resizable reports whether Permits is the size that [zklock.Client.Resize] sets. Then
	// more permits may be held, because a smaller size revokes none.
	Resizable bool
	// Crashed counts the holders and waiters with a lock-delay that ended without a
	// release. Only [Reader.ReadDetail] counts them.
	Crashed int
	// LastRun is the last recorded run, see [zklock.Hold.RecordRun]; zero if there is none.
	// Only [Reader.ReadDetail] reads it.
	LastRun zklock.Run
	// Warnings describe what on the lock's path does not work as its users may expect.
	Warnings []string
	// PastHolds are the durations of the holds whose start and end the watcher saw, as in its
	// [History]; zero outside of a [Watcher].
	PastHolds DurationStats
	// Version is that of the first snapshot with the lock in this state; 0 outside of a
	// [Watcher].
	Version uint64

	sharesGate bool // other entries contend at the gate of kazoo's Semaphore, so it is a lock, too
}

// An Entry is one entry of a lock, with what inspect derives from it.
type Entry struct {
	zklock.Entry
	Recipe Recipe
	// Position is that of a waiter among the waiters, from 1; 0 for a holder, and -1 for a
	// stray. Entries of one acquire have one position.
	Position int
	// Granted is when the watcher saw the entry get the lock, by the local clock. It is
	// zero for an entry that does not hold or that already held when it was first seen, and
	// always zero outside of a [Watcher].
	Granted time.Time

	misnamed bool // see isMisnamed; false with a custom layout
}

// CheckToken returns an error if l does not tell which entries belong to the hold with the fencing
// token, or to any hold if token is 0. Call it before you break, revoke, or verify a hold.
//
// The error is [ErrLayoutUnknown] if only their data declare the layout of these entries, because
// anyone can write such data. Other entries do not matter: any client that may create entries can
// create one whose data declare a layout.
//
// The error wraps [zk.ErrNoAuth] if no entry that can be read has the token, and the reader may
// not read another one: that entry can have the token.
func (l *Lock) CheckToken(token int64) error {
	if l.Layout != (zklock.Layout{}) {
		return ErrLayoutUnknown
	}
	own, claimed := false, false // whether an entry has the token, and a misnamed one claims it
	hidden := ""                 // the first znode that may have the token, but cannot be read
	for _, e := range l.Entries {
		switch {
		case e.misnamed && (token == 0 && e.Holder || hasToken(e.Entry, token)):
			return ErrLayoutUnknown
		case e.misnamed:
			claimed = claimed || token != 0 && e.Owner.Token == token
		case hasToken(e.Entry, token):
			own = own || e.Holder || e.Czxid == token
		case hidden == "" && hidesToken(e.Entry):
			hidden = e.Node
		}
	}
	switch {
	case own || token == 0:
		return nil
	case claimed:
		return ErrLayoutUnknown
	case hidden != "":
		return errHidden(token, hidden)
	}
	return nil
}

// hidesToken reports whether an entry could not be read, and may be of a hold. A stray can be an
// entry in a custom layout, or a permit of kazoo's Semaphore.
func hidesToken(e zklock.Entry) bool {
	return e.Token == 0 && (e.Mode != zklock.Stray || isSequential(e.Name) || kazooPermitName(e.Name))
}

// errHidden returns the error for a token that may be that of an unreadable znode.
func errHidden(token int64, node string) error {
	return fmt.Errorf("cannot tell whether a hold has token %d: %w", token,
		&zk.Error{Op: "get", Path: node, Err: zk.ErrNoAuth})
}

// Contenders returns the entries without strays.
func (l *Lock) Contenders() []Entry {
	return l.filter(func(e Entry) bool { return e.Mode != zklock.Stray })
}

// Holders returns the entries that hold the lock: for a semaphore, one for each permit, and
// the holders of other locks on its path.
func (l *Lock) Holders() []Entry {
	return l.filter(func(e Entry) bool { return e.Holder })
}

// HoldersWith returns the entries of [Lock.Holders] that can belong to the hold with this fencing
// token: those whose Token or Czxid it is. After a downgrade, the data of the entry contain the
// token, and a client with WRITE on the entry can change them.
func (l *Lock) HoldersWith(token int64) []Entry {
	return l.filter(func(e Entry) bool { return e.Holder && hasToken(e.Entry, token) })
}

// OfHold returns the entries of the hold that e belonged to when it was read before. They have the
// czxid of e. If e is exclusive, a downgrade replaces it with a shared entry of the same session,
// in the same parent, with the same sequence number. OfHold ignores the token, because a client
// with WRITE on an entry can change it. If an entry may not be read, only its name is compared.
func (l *Lock) OfHold(e Entry) []Entry {
	ids := e.identities()
	transactions := map[int64]bool{} // that created the entries: one creates all of a hold
	found := func(now Entry) bool {
		is := func(id identity) bool { return slices.Contains(ids, id) }
		return slices.ContainsFunc(now.reliable(), is)
	}
	for _, now := range l.Entries {
		if now.Czxid != 0 && found(now) {
			transactions[now.Czxid] = true
		}
	}
	return l.filter(func(now Entry) bool { return transactions[now.Czxid] || found(now) })
}

// identity is one of the things that identify the hold of an entry: the czxid, the znode, or the
// session and the place. The session is 0 if the entry may not be read.
type identity struct {
	czxid, session int64
	node, place    string
}

// identities returns what can identify the hold of an entry in a later read.
func (e Entry) identities() []identity {
	ids := []identity{{czxid: e.Czxid}, {node: e.Node}}
	if place := e.place(); place != "" && e.Mode == zklock.Exclusive {
		ids = append(ids, identity{session: e.Session, place: place}, identity{place: place})
	}
	return ids
}

// reliable returns those of the identities of an entry by which it belongs to a hold that was read
// before. Only of an entry that may not be read, the znode is one, because names can be used again.
func (e Entry) reliable() []identity {
	ids := []identity{{czxid: e.Czxid}}
	switch {
	case e.Czxid == 0:
		ids = []identity{{node: e.Node}}
	case e.Session == 0:
		return ids
	}
	if place := e.place(); place != "" && e.Mode == zklock.Shared {
		ids = append(ids, identity{session: e.Session, place: place})
	}
	return ids
}

// place returns the parent and the sequence number of an entry, which a downgrade keeps, or an
// empty string if it has no sequence number.
func (e Entry) place() string {
	if !isSequential(e.Name) || e.Node == e.Path {
		return ""
	}
	return path.Dir(e.Node) + "/" + e.Name[len(e.Name)-sequenceDigits:]
}

// HeldPermits returns the number of permits that are held. It does not count the holders of
// other locks on the path of a semaphore.
func (l *Lock) HeldPermits() int {
	return len(l.filter(func(e Entry) bool { return e.Holder && e.Mode == zklock.Permit }))
}

// holderCount returns the number of holders, or of a semaphore the number of held permits.
func (l *Lock) holderCount() int {
	if l.Kind == KindSemaphore {
		return l.HeldPermits()
	}
	return len(l.Holders())
}

// filter returns the entries for which is returns true, in order.
func (l *Lock) filter(is func(Entry) bool) []Entry {
	var all []Entry
	for _, e := range l.Entries {
		if is(e) {
			all = append(all, e)
		}
	}
	return all
}

// Waiting returns the number of waiters.
func (l *Lock) Waiting() int {
	n := 0
	for _, e := range l.Entries {
		n = max(n, e.Position)
	}
	return n
}

// KazooPermits returns the number of strays that look like permits of kazoo's Semaphore:
// on the path of another recipe, they exclude none of its entries.
func (l *Lock) KazooPermits() int { return len(l.filter(strayKazooPermit)) }

// strayKazooPermit reports whether a stray looks like a permit of kazoo's Semaphore.
func strayKazooPermit(e Entry) bool {
	return e.Mode == zklock.Stray && e.Session != 0 && kazooPermitName(e.Name)
}

// kazooPermitName reports whether kazoo's Semaphore gives its permits such names.
func kazooPermitName(name string) bool {
	return len(name) == 32 && strings.Trim(name, "0123456789abcdef") == ""
}

// kazooGate ends the path of the kazoo Lock that orders the acquires of kazoo's Semaphore.
// Its entries are the waiters of the semaphore.
const kazooGate = "-__lock__"

// isKazooSemaphore reports whether l is kazoo's Semaphore with a permit that is held.
func (l *Lock) isKazooSemaphore() bool {
	return l != nil && len(l.Entries) > 0 && l.Entries[0].Recipe == Recipe{libKazoo, kindPermit}
}

// hasKazooGate reports whether l is kazoo's Semaphore with a permit that is held, and all entries
// at its gate are its waiters.
func (l *Lock) hasKazooGate() bool { return l.isKazooSemaphore() && !l.sharesGate }

// takeKazooPermits makes l a semaphore and returns true if all its entries are permits of
// kazoo's Semaphore, which exist only while they are held.
func (l *Lock) takeKazooPermits() bool {
	if len(l.Entries) == 0 || l.KazooPermits() < len(l.Entries) {
		return false
	}
	l.Kind = KindSemaphore
	for i := range l.Entries {
		e := &l.Entries[i]
		e.Mode, e.Holder, e.Recipe = zklock.Permit, true, Recipe{libKazoo, kindPermit}
	}
	return true
}

// addKazooWaiters adds the entries of the gate of kazoo's Semaphore as its waiters. The holder
// of the gate waits for a permit, and the others wait for the gate. Entries of other recipes there
// are no waiters of the semaphore.
func (l *Lock) addKazooWaiters(gate []zklock.Entry) {
	for _, e := range gate {
		if e.Mode != zklock.Exclusive || RecipeOf(e).Library != libKazoo {
			l.sharesGate = l.sharesGate || e.Mode != zklock.Stray
			continue
		}
		e.Path, e.Mode, e.Holder = l.Path, zklock.Permit, false
		l.Entries = append(l.Entries, Entry{Entry: e, Recipe: Recipe{libKazoo, kindGate}})
	}
}

// SameAcquire reports whether one acquire created both entries of a queue, as in the mixed
// layout: in one transaction. Such entries are next to each other.
func SameAcquire(a, b zklock.Entry) bool {
	return a.Session == b.Session && a.Session != 0 && a.Czxid == b.Czxid && a.Czxid != 0
}

// FirstPerAcquire returns the first entry of each acquire. A hold of several permits, or in
// the mixed layout, has several entries.
func FirstPerAcquire(entries []Entry) []Entry {
	type attempt struct{ session, czxid int64 }
	seen := map[attempt]bool{}
	var first []Entry
	for _, e := range entries {
		a := attempt{e.Session, e.Czxid}
		if e.Session == 0 || !seen[a] {
			first = append(first, e)
		}
		seen[a] = true
	}
	return first
}

// CountSessions returns the number of sessions that own the entries. For holders this
// counts clients, not entries: a client may hold several permits.
func CountSessions(entries []Entry) int {
	sessions := map[int64]bool{}
	for _, e := range entries {
		sessions[e.Session] = true
	}
	return len(sessions)
}

// bytes estimates the memory that the lock uses.
func (l *Lock) bytes() int {
	const entry = 512
	n := entry + len(l.Path)
	for i := range l.Entries {
		e := &l.Entries[i]
		n += entry + len(e.Node) + len(e.Name) + len(e.Data) + len(e.Value) + len(e.Owner.Host) + len(e.Owner.User) + len(e.Owner.Command) +
			len(e.Owner.Version) + len(e.Owner.ParentSession) + len(e.Request.By.Host) + len(e.Request.By.User) + len(e.Request.Reason)
	}
	return n
}
