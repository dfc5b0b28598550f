package inspect

import (
	"time"

	"github.com/zklock/zklock"
)

// WatchOptions configure a [Watcher] and limit its cost. The zero value works.
type WatchOptions struct {
	// Prefix is the path below which the watcher finds locks; "/" means the whole tree.
	// Empty means /zklock, which contains the locks whose names do not begin with a slash.
	Prefix string
	// Layout is the custom layout of the locks. The zero Layout knows the entries of
	// Curator, kazoo, go-zookeeper, and zklock.
	Layout zklock.Layout
	// List limits each listing of the tree. The watcher does not call its OnLock.
	List ListOptions
	// MaxReadRate limits the reads per second outside of listings, averaged over ten
	// seconds. 0 means 500.
	MaxReadRate int
	// Interval is how long the watcher collects changes of one lock before it reads the
	// lock again, and the minimum time between two snapshots. 0 means 100 ms.
	Interval time.Duration
	// RelistInterval is the minimum time between the starts of two listings. A lost
	// connection makes a new listing necessary. Servers without recursive watches, before
	// ZooKeeper 3.6, are listed at this interval. 0 means 30 s. After an interrupted
	// listing, the first retries come sooner.
	RelistInterval time.Duration
}

func (o WatchOptions) withDefaults() WatchOptions {
	if o.Prefix == "" {
		o.Prefix = namesRoot
	}
	if o.MaxReadRate <= 0 {
		o.MaxReadRate = 500
	}
	if o.Interval <= 0 {
		o.Interval = 100 * time.Millisecond
	}
	if o.RelistInterval <= 0 {
		o.RelistInterval = 30 * time.Second
	}
	o.List = o.List.withDefaults()
	return o
}

// A Snapshot is the state of all locks that a [Watcher] knew at one time. It does not
// change.
type Snapshot struct {
	// Version starts at 1 and grows with each snapshot of a watcher.
	Version uint64
	At      time.Time // by the local clock
	Locks   []*Lock   // locks with a holder or a waiter, sorted by path
	Status  Status

	omitted  map[string]error // as Watcher.omitted
	unlisted map[string]error // as Watcher.unlisted
	partial  bool             // more is missing than these
}

// Status tells how current and how complete a [Watcher]'s list is, and what it cost.
type Status struct {
	Prefix string `json:"prefix"`
	// Connected reports whether the client has a connection. Without one, the list is as of
	// LastContact.
	Connected    bool      `json:"connected"`
	LastContact  time.Time `json:"heard"` // when a server was last known to answer
	Started      time.Time `json:"started"`
	Listed       bool      `json:"walked"`           // the first listing has ended
	Listing      bool      `json:"walking"`          // a listing is running
	Complete     bool      `json:"complete"`         // the listing saw everything below the prefix
	Reason       string    `json:"why,omitempty"`    // why the list is not complete, and what to do
	Watching     bool      `json:"live"`             // a watch reports changes; otherwise the watcher polls
	Pending      int       `json:"behind,omitempty"` // locks that changed and were not read yet
	Reads        int64     `json:"reads"`            // since the start
	Events       int64     `json:"events"`           // received since the start
	MaxListReads int       `json:"walkReads"`        // limit of a listing
	MaxReadRate  int       `json:"readRate"`         // limit per second outside of listings
}
