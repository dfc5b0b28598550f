package doctor

import (
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/inspect"
	"github.com/zklock/zklock/zk"
)

// Config says what to check, and how.
type Config struct {
	// Servers is the connection string, as for [zk.Dial].
	Servers string
	// Zk has the options of every session. SessionTimeout is the timeout that is judged.
	Zk zk.Options
	// Prefix is the path below which locks are checked; "/" means all locks.
	Prefix string
	// Layout is the custom layout of the locks, if they have one.
	Layout zklock.Layout
	// Held is how long a lock may be held without a warning. Zero means that only
	// unusually long holds cause a warning.
	Held time.Duration
	// LastZxid is the highest transaction id that an earlier run saw, 0 if there was none.
	// ZxidFile is the file that keeps it, for messages. ZxidErr is the reason why no file
	// keeps it, nil if a file does or if the servers have no context.
	LastZxid int64
	ZxidFile string
	ZxidErr  error
	// Private reports that only this user reaches the servers.
	Private bool
	// Limit is the time limit for connecting to one server, and for the requests to it.
	Limit time.Duration
	// Apart is the time between the two reads of a possible deadlock.
	Apart time.Duration
}

// A Server has the facts about one server.
type Server struct {
	Address string `json:"address"`
	Error   string `json:"error,omitempty"` // why there is no session on it
	// Answers reports whether the server answered, even if it refused a session.
	Answers bool   `json:"answers"`
	Role    string `json:"role,omitempty"`    // leader, follower, observer, standalone, read-only
	Version string `json:"version,omitempty"` // as 3.8.0
	// Words are the four-letter words that the server answered; it does not allow the others.
	Words []string `json:"words,omitempty"`
	Read  Latency  `json:"read_s"`
	Sync  Latency  `json:"sync_s"`
	Write Latency  `json:"write_s"` // of a check that a quorum commits; it changes nothing
	// Timeout is the session timeout that the server granted for the requested one.
	// MinTimeout and MaxTimeout are its limits, 0 if unknown.
	Timeout    Span `json:"timeout_s"`
	MinTimeout Span `json:"min_timeout_s"`
	MaxTimeout Span `json:"max_timeout_s"`
	// Tick and SyncLimit (in ticks) are from conf; 0 if the server does not allow it.
	Tick      Span `json:"tick_s,omitempty"`
	SyncLimit int  `json:"sync_limit,omitempty"`
	// Outstanding is the number of requests that wait in the server, from srvr.
	Outstanding int `json:"outstanding"`
	// Synced is the number of synced followers of a leader, from mntr; -1 if unknown.
	Synced int `json:"synced"`
	// OpenFiles and MaxFiles are descriptors of the server, from mntr; 0 if unknown.
	OpenFiles int `json:"open_files,omitempty"`
	MaxFiles  int `json:"max_files,omitempty"`

	err      error
	config   string // of the ensemble, as the servers store it
	identity int64  // czxid of the first existing znode at or above the prefix
}

// Latency has the times of several requests, sent one after another.
type Latency struct {
	Median Span `json:"median"`
	Max    Span `json:"max"`
}

// A Clock compares the leader's clock with this machine's.
type Clock struct {
	// Ahead is by how much the leader's clock is ahead at least, negative if it is
	// behind, and 0 if the two clocks may agree.
	Ahead time.Duration
	Err   error // why Ahead is unknown
}

// A Parent is the parent of entries.
type Parent struct {
	Path   string
	Stat   zk.Stat
	ACL    []zk.ACL
	Unread error // of the ACL
}

// Creates returns how many children it ever had. The servers count creates plus deletes;
// creates minus deletes is the number of children that exist. After 2^30 creates, the count
// no longer fits into an int32, and Cversion is negative.
func (p Parent) Creates() int64 {
	return int64(uint32(p.Stat.Cversion+p.Stat.NumChildren) / 2)
}

// Facts are the facts that the judge functions use.
type Facts struct {
	Config
	Now     time.Time // by this machine's clock
	Servers []Server
	Clock   Clock
	Rate    *Rate // nil if unknown
	// Probe is why a znode could not be created and deleted below At, nil if it could.
	Probe   error
	At      string
	Missing bool // the znode at the prefix does not exist

	Zxid int64 // of the last transaction, after a sync; 0 if unknown

	Locks   []*inspect.Lock
	Walk    error             // why Locks is incomplete
	Parents map[string]Parent // by path
	// Replaceable are the closed znodes that other clients can replace while they are empty.
	Replaceable []string
	Who         []zk.Identity      // the client's identities on the servers; nil if unknown
	Deadlocks   []inspect.Deadlock // that were in both reads
	Silent      []Silence          // of holders' sessions that are in jeopardy
	Unheard     error              // why Silent is unknown
	Main        error              // why the ensemble as a whole could not be queried
}

// serverNow returns the leader's time.
func (f *Facts) serverNow() time.Time { return f.Now.Add(f.Clock.Ahead) }
