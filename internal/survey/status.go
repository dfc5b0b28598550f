package survey

import (
	"time"

	"github.com/zklock/zklock"
)

// Options say what a [Survey] looks at, and how much that may cost. The zero value
// works.
type Options struct {
	// Prefix is the path below which locks are looked for; "/" means everything.
	// Empty means /zklock, where names without a slash are.
	Prefix string
	// Layout is that of the locks, where it is one of the user's own. The zero
	// Layout knows Curator's, kazoo's, go-zookeeper's and zklock's entries.
	Layout zklock.Layout
	// Limits bound each walk. Its Found is not used.
	Limits Limits
	// ReadRate bounds the reads in a second, on the average of any ten, while no
	// walk is under way; 0 means 500.
	ReadRate int
	// Settle is how long changes of one lock are gathered before it is read
	// again, and how old a snapshot may become before the next; 0 means 100 ms.
	Settle time.Duration
	// Rewalk is the least time between the beginnings of two walks, which a lost
	// connection makes necessary; and where the servers have no recursive watches,
	// as before ZooKeeper 3.6, how often one is made; 0 means 30 s. After walks that
	// were interrupted it is less at first.
	Rewalk time.Duration
}

func (o Options) filled() Options {
	if o.Prefix == "" {
		o.Prefix = namesRoot
	}
	if o.ReadRate <= 0 {
		o.ReadRate = 500
	}
	if o.Settle <= 0 {
		o.Settle = 100 * time.Millisecond
	}
	if o.Rewalk <= 0 {
		o.Rewalk = 30 * time.Second
	}
	o.Limits = o.Limits.filled()
	return o
}

// A Snapshot is what a [Survey] knew at a moment. It does not change.
type Snapshot struct {
	// Version counts up with each snapshot of a survey, from 1.
	Version uint64
	At      time.Time // by this machine's clock
	Locks   []*Lock   // that somebody holds or waits for, in the order of their paths
	Status  Status
}

// Status says how well a [Survey] knows what it shows, and what that cost.
type Status struct {
	Prefix string `json:"prefix"`
	// Connected reports whether a server is there now; without one, all is as it
	// was at Heard.
	Connected bool      `json:"connected"`
	Heard     time.Time `json:"heard"` // when a server was last known to be there
	Started   time.Time `json:"started"`
	Walked    bool      `json:"walked"`           // the first walk has come to its end
	Walking   bool      `json:"walking"`          // one is under way
	Complete  bool      `json:"complete"`         // the walk saw all there is below the prefix
	Why       string    `json:"why,omitempty"`    // why it is not complete, and what to do
	Live      bool      `json:"live"`             // a watch tells of changes; else the servers are asked now and then
	Behind    int       `json:"behind,omitempty"` // locks that are known to have changed and are not read yet
	Reads     int64     `json:"reads"`            // made since the start
	Events    int64     `json:"events"`           // that the servers sent since the start
	WalkReads int       `json:"walkReads"`        // bound of the walk
	ReadRate  int       `json:"readRate"`         // bound afterwards, a second
}
