package queue

import "time"

// A Spec says what a claim asks for: the queues that it joins, and what it does
// on finding them taken. Either Node is set, or there is at least one of Members
// and Semaphores, all with paths of their own.
type Spec struct {
	// Members are joined in one transaction, so that all their entries have one
	// czxid, which is the token.
	Members []Member
	// InOrder joins the members one after another instead, in the given order,
	// each when the one before it is held. There is no common token then.
	InOrder bool
	// Semaphores are taken after the members, in the given order.
	Semaphores []Semaphore
	// Node is the path of a node lock: one ephemeral znode with a fixed name.
	Node string
	// Try fails the claim with ErrLocked where it would have to wait for others.
	Try bool
	// Data goes into the claim's znodes. It is empty or a JSON object.
	Data []byte
	// Delay is how long the claim keeps off a member's lock whose last holder
	// vanished without a release, counted from when the client first saw that. With
	// it goes a record beside each entry by which others see the same. Zero means
	// neither. Not for members with custom names.
	Delay time.Duration
}

// A Member is one queue of a claim's.
type Member struct {
	Path   string // of the znode whose children are the queue
	Kind   Kind
	Writer bool // an exclusive entry is named as a read-write lock's writer
	Names  Names
	// Beside lets a shared entry be granted beside another library's exclusive
	// entries which do not heed readers.
	Beside bool
}

// A Semaphore is a number of permits, in Curator's layout: whoever holds the
// gate, a mutex at Path/locks, adds entries to Path/leases and keeps the gate
// until there are at most Of of them.
type Semaphore struct {
	Path    string
	Permits int // how many to take, at least 1
	Of      int // how many there are, at least Permits
}

// Names says how a queue's entries are named, and which children contend. The
// zero Names are Curator's.
type Names struct {
	Layout Layout
	// The rest is for Custom: an entry is named by Prefix, the marker of its kind,
	// and the sequence number.
	Prefix    string
	Exclusive string // marker
	Shared    string // marker; empty if there are no readers
	// Only lets only children contend whose names begin with Prefix, as several
	// locks share one parent.
	Only bool
}

// Nameless reports whether entries' names have no GUID in them, so that an entry may
// come to the name of an earlier one.
func (n Names) Nameless() bool { return n.Layout == Custom || n.Layout == WriteLock }

// shared reports whether there is a name for readers.
func (n Names) shared() bool {
	return n.Layout != Latch && n.Layout != WriteLock && (n.Layout != Custom || n.Shared != "")
}
