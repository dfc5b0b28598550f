package survey

import (
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
)

// Options say what a [Survey] looks at. The zero value works.
type Options struct {
	// Prefix is the path below which locks are looked for; "/" means everything.
	// Empty means /zklock, where names without a slash are.
	Prefix string
	// Layout is that of the locks, where it is one of the user's own. The zero
	// Layout knows Curator's, kazoo's, go-zookeeper's and zklock's entries.
	Layout zklock.Layout
	// WalkReads is how many reads the walk makes at most; 0 means 20000.
	WalkReads int
	// ReadRate bounds the reads in a second once the walk is over; 0 means 500.
	ReadRate int
	// Settle is how long changes of one lock are gathered before it is read
	// again; 0 means 100 ms.
	Settle time.Duration
	// Rewalk is how often all is looked at again where the servers have no
	// recursive watches, as before ZooKeeper 3.6; 0 means 10 s.
	Rewalk time.Duration
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
	Prefix string   `json:"prefix"`
	State  zk.State `json:"-"`
	// Connected reports whether a server is there now; without one, all is as it
	// was at Heard.
	Connected bool      `json:"connected"`
	Heard     time.Time `json:"heard"` // when a server was last known to be there
	Started   time.Time `json:"started"`
	Walked    bool      `json:"walked"`           // the first walk has come to its end
	Complete  bool      `json:"complete"`         // the walk saw all there is below the prefix
	Why       string    `json:"why,omitempty"`    // why it is not complete, and what to do
	Live      bool      `json:"live"`             // a watch tells of changes; else the servers are asked now and then
	Behind    int       `json:"behind,omitempty"` // locks that are known to have changed and are not read yet
	Reads     int64     `json:"reads"`            // made since the start
	Events    int64     `json:"events"`           // that the servers sent since the start
	WalkReads int       `json:"walkReads"`        // bound of the walk
	ReadRate  int       `json:"readRate"`         // bound afterwards, a second
}
