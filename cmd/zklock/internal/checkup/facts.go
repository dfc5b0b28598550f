package checkup

import (
	"context"
	"net"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/internal/survey"
	"github.com/zklock/zklock/zk"
)

// Config says what to look at, and how. Servers must be set.
type Config struct {
	// Servers is the connection string, as for [zk.Dial].
	Servers string
	// Zk are the options of every session; SessionTimeout is the one that is
	// judged. Zero fields mean what they do there.
	Zk zk.Options
	// Prefix is the path below which locks are looked at; "/" means everything.
	// Empty means /zklock.
	Prefix string
	// Layout is that of the locks, where it is one of the user's own.
	Layout zklock.Layout
	// Held is how long a lock may be held; longer is worth a warning. Zero means
	// no bound besides what is usual for each lock.
	Held time.Duration
	// LastZxid is the highest transaction id that an earlier look saw; 0 if there was
	// none. ZxidFile is where it is kept, for messages.
	LastZxid int64
	ZxidFile string
	// Limit bounds what is asked of one server; 0 means 10 s.
	Limit time.Duration
	// Apart is the time between two looks at what may be a deadlock; 0 means 1 s.
	Apart time.Duration
}

// filled is the configuration with its zero fields set.
func (c Config) filled() Config {
	if c.Prefix == "" {
		c.Prefix = "/zklock"
	}
	if c.Limit <= 0 {
		c.Limit = 10 * time.Second
	}
	if c.Apart <= 0 {
		c.Apart = time.Second
	}
	if c.Zk.SessionTimeout == 0 {
		c.Zk.SessionTimeout = 20 * time.Second
	}
	return c
}

// dial makes a connection for what is not the client's business.
func (c Config) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if c.Zk.DialContext != nil {
		return c.Zk.DialContext(ctx, network, address)
	}
	return (&net.Dialer{}).DialContext(ctx, network, address)
}

// A Server is what was found out about one server.
type Server struct {
	Address string `json:"address"`
	Error   string `json:"error,omitempty"` // why there is no session on it
	// Answers reports whether anything answered there, be it to refuse a session.
	Answers bool   `json:"answers"`
	Role    string `json:"role,omitempty"`    // leader, follower, observer, standalone, read-only
	Version string `json:"version,omitempty"` // as 3.8.0
	// Words are the four-letter words that it answered; the others are not allowed.
	Words []string `json:"words,omitempty"`
	Read  Latency  `json:"read_s"`
	Sync  Latency  `json:"sync_s"`
	Write Latency  `json:"write_s"` // of a check that a quorum commits and that changes nothing
	// Timeout is what was negotiated when the one in use was asked for; MinTimeout
	// and MaxTimeout are the server's bounds; 0 if they are not known.
	Timeout    Span `json:"timeout_s"`
	MinTimeout Span `json:"min_timeout_s"`
	MaxTimeout Span `json:"max_timeout_s"`
	// Tick and SyncLimit (in ticks) are what conf says; 0 if it may not be asked.
	Tick      Span `json:"tick_s,omitempty"`
	SyncLimit int  `json:"sync_limit,omitempty"`
	// Outstanding requests wait in the server, as srvr says.
	Outstanding int `json:"outstanding"`
	// Synced is how many followers a leader has that are up to date, as mntr says;
	// -1 if it did not say so.
	Synced int `json:"synced"`
	// OpenFiles and MaxFiles are the server's descriptors, as mntr says; 0 unknown.
	OpenFiles int `json:"open_files,omitempty"`
	MaxFiles  int `json:"max_files,omitempty"`

	err      error
	config   string // the ensemble's, as the servers keep it
	identity int64  // czxid of the first znode that is there at or above the prefix
}

// Latency is what several requests took, one after another.
type Latency struct {
	Median Span `json:"median"`
	Max    Span `json:"max"`
}

// A Clock compares the leader's clock with this machine's.
type Clock struct {
	// Ahead is how much the leader's is ahead at least; negative if it is behind,
	// and 0 if the two may be the same.
	Ahead time.Duration
	Err   error // why it is not known
}

// A Parent is what a znode above entries says.
type Parent struct {
	Path   string
	Stat   zk.Stat
	ACL    []zk.ACL
	Unread error // of the ACL
}

// Creates is how many children it ever had. Servers count changes of the list:
// what was created less what was deleted is what is there.
func (p Parent) Creates() int64 {
	return (int64(p.Stat.Cversion) + int64(p.Stat.NumChildren)) / 2
}

// Facts are what is judged.
type Facts struct {
	Config
	Now     time.Time // by this machine's clock
	Servers []Server
	Clock   Clock
	Rate    *Rate // nil if it is not known
	// Probe is why a znode could not be made and deleted in the place At, nil if it
	// could.
	Probe   error
	At      string
	Missing bool // there is nothing at the prefix

	Zxid int64 // of the last transaction, by a server that is up to date; 0 if not known

	Locks     []*survey.Lock
	Walk      error             // why Locks are not all
	Parents   map[string]Parent // by path
	Who       []zk.Identity     // as whom the servers know us; nil if they can't tell
	Deadlocks []survey.Deadlock // that stood through two looks
	Main      error             // why nothing could be asked of the ensemble as a whole
}

// serverNow is the leader's time.
func (f *Facts) serverNow() time.Time { return f.Now.Add(f.Clock.Ahead) }
