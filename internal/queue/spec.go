package queue

import "time"

// A Spec describes an acquire: its locks, and whether it waits. Either Node is set, or
// there is at least one of Members and Semaphores, each with a different path.
type Spec struct {
	// Members are enqueued in one transaction, so all their entries have one czxid, which
	// is the token.
	Members []Member
	// InOrder enqueues the members one after another in the given order, each when the
	// one before it is held. There is no common token then.
	InOrder bool
	// Semaphores are acquired after the members, in the given order.
	Semaphores []Semaphore
	// Node is the path of a node lock: one ephemeral znode with a fixed name.
	Node string
	// Try fails the acquire with ErrLocked if it would have to wait for another client.
	Try bool
	// Data goes into the acquire's znodes. It is empty or a JSON object.
	Data []byte
	// Delay is how long the acquire waits before it takes a member's lock whose last
	// holder crashed, counted from when the client first saw that. With a delay, each entry
	// has a record, by which other clients notice a crash. Zero means neither. It does not
	// apply to members with custom names.
	Delay time.Duration
	// TellAfter is how long the acquire waits for an entry before it reads whose entry it
	// is, and sends the Waiting signal. Zero means that it reads at once. A wait that ends
	// earlier costs the servers no read.
	TellAfter time.Duration
}

// A Member is one queue of an acquire.
type Member struct {
	Path   string // the znode whose children are the queue
	Kind   Kind
	Writer bool // an exclusive entry is named as a read-write lock's writer
	Names  Names
	// AllowForeign permits the grant of a shared entry next to another library's exclusive
	// entries that do not wait for readers.
	AllowForeign bool
}

// A Semaphore is a number of permits in Curator's layout: an acquire takes the gate, which
// is a mutex at Path/locks, adds entries to Path/leases, and keeps the gate until there
// are at most Of of them.
type Semaphore struct {
	Path    string
	Permits int // how many to acquire, at least 1
	Of      int // how many there are, at least Permits; 0 for the size that the servers store
}

// Names says how a queue's entries are named, and which children contend. The zero value
// is Curator's layout.
type Names struct {
	Layout Layout
	// The rest is for Custom: an entry is named by Prefix, the marker of its kind,
	// and the sequence number.
	Prefix    string
	Exclusive string // marker
	Shared    string // marker; empty if there are no readers
	// Only ignores children whose names do not begin with Prefix, for several locks below
	// one parent.
	Only bool
}

// HasReusableNames reports whether the names of entries contain no GUID, so that a later
// entry may have the name of an earlier one.
func (n Names) HasReusableNames() bool { return n.Layout == Custom || n.Layout == WriteLock }

// shared reports whether the layout has readers.
func (n Names) shared() bool {
	return n.Layout != Latch && n.Layout != WriteLock && (n.Layout != Custom || n.Shared != "")
}
