package queue

import "time"

// ID names one Acquire, and the hold that comes of it. IDs count up from 1 and
// are never used again.
type ID uint64

// RequestKind is what a Request asks of ZooKeeper.
type RequestKind uint8

// The requests.
const (
	Create RequestKind = iota // create2 of an ephemeral sequential znode: Path, Data
	List                      // getChildren: Path
	Get                       // getData, leaving a watch: Path
	Delete                    // delete of any version: Path
	Check                     // a multi of one check(path, any version) for each of Paths; none is an empty multi
	Make                      // create of a parent, a container or else persistent: Path, Container
)

// A Request is to be sent on the session, in the order of the output.
type Request struct {
	ID        uint64
	Kind      RequestKind
	Path      string
	Paths     []string
	Data      []byte
	Container bool
}

// Code is how a request ended.
type Code uint8

// The outcomes of a request.
const (
	OK            Code = iota
	NoNode             // the znode, or a create's parent, is not there
	NodeExists         // the znode is there already
	Unimplemented      // the server does not know the operation
	NotApplied         // surely not applied, may be tried again: never sent, throttled, moved
	Unknown            // sent, and the connection was lost before the answer: perhaps applied
	SessionOver        // the session ended
	Refused            // a permanent error, which Err tells
)

// A Reply is the outcome of the Request with its ID.
type Reply struct {
	ID       uint64
	Code     Code
	Err      error    // what Refused, or a failure to be reported, was
	Failed   int      // which of Check's Paths failed, -1 if none by itself
	Path     string   // the name that Create made
	Czxid    int64    // of Create
	Owner    int64    // the ephemeral owner, of Create and Get
	Data     []byte   // of Get
	Children []string // of List

	Sent, Received time.Duration
	Conn           uint64 // which of the client's connections answered
}

// EventKind is what a watch told of a znode.
type EventKind uint8

// The events.
const (
	Deleted EventKind = iota
	Changed           // data changed, or created: a one-shot watch has to be left again
)

// SessionState is what became of the session.
type SessionState uint8

// The states of a session.
const (
	Connected    SessionState = iota // to a server that takes writes
	Disconnected                     // or connected to a read-only server
	Expired                          // the session is over; another will follow
	Closed                           // the client is closed, or refused for ever; no other session follows
)

// A SessionChange tells of the session's state.
type SessionChange struct {
	State   SessionState
	Session int64
	Timeout time.Duration // negotiated
	Sent    time.Duration // when the ConnectRequest was sent
	Conn    uint64
	Err     error // why, for Closed
	Left    error // for Closed: why the session's znodes may be there still; nil if they are gone
}

// SignalKind is what a Signal tells.
type SignalKind uint8

// The signals.
const (
	Granted   SignalKind = iota // the claim holds the lock: Token, Node, Session
	Failed                      // the claim is over and nothing is held: Err
	Lost                        // the hold is over: Err
	Released                    // a released hold's znode is gone (Err nil), or can't be deleted now (Err)
	Waiting                     // the claim has a place in the queue: Ahead, Blocker, Data
	Jeopardy                    // the hold's heartbeat is overdue
	Recovered                   // the heartbeat was answered again
	Verified                    // a Verify's answer: Err nil says that the hold was held at that moment
	NearLimit                   // the path's sequence numbers come near their limit: Token is the number
)

// A Signal goes to whoever made the claim.
type Signal struct {
	ID      ID
	Kind    SignalKind
	Token   int64
	Node    string
	Session int64
	Err     error
	Ahead   int    // how many entries are ahead
	Blocker string // the znode that is waited for
	Data    []byte // that znode's data
	Call    uint64 // which Verify
}
