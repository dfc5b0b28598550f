package queue

import "time"

// ID names one Acquire, and the hold that comes of it. IDs count up from 1 and
// are never used again.
type ID uint64

// RequestKind is what a Request asks of ZooKeeper.
type RequestKind uint8

// The requests.
const (
	Create     RequestKind = iota // Creates: one by create2, several in one multi
	List                          // getChildren: Path, Watch
	Get                           // getData: Path, Watch
	Set                           // setData: Path, Data, Version
	Delete                        // delete of any version: Path
	Check                         // a multi of one check(path, any version) for each of Paths; none is an empty multi
	Make                          // create of a parent, a container or else persistent: Path, Container
	Swap                          // one multi that makes Creates and deletes Paths
	Guard                         // one multi of a check for each of Paths, and the operations of the Call
	Sync                          // sync: Path
	Renew                         // one multi that makes Creates and deletes Paths of former holds
	ReadAccess                    // getACL: Path
)

// A Creation is one znode that Create, Swap or Renew makes.
type Creation struct {
	Path       string
	Data       []byte
	Sequential bool // the server appends a sequence number
	Persistent bool // else ephemeral
	Access     Access
}

// A Request is to be sent in the order of the output.
type Request struct {
	ID        uint64
	Session   int64 // it is meant for, and must not be sent in another; 0 if there is none
	Kind      RequestKind
	Path      string
	Paths     []string
	Creates   []Creation
	Data      []byte
	Version   int32
	Watch     bool
	Container bool
	Access    Access // of Make
	Call      uint64 // whose operations Guard carries
	// Join permits to send it in one transaction with others of the same moment, of
	// which no two make znodes below one parent. Where another of them fails, so
	// that it is not done, the answer is Undone.
	Join bool
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
	Undone             // surely not applied, through the fault of another it was joined with
	Unknown            // sent, and the connection was lost before the answer: perhaps applied
	SessionOver        // the session ended
	Refused            // a permanent error, which Err tells
)

// A Reply is the outcome of the Request with its ID.
type Reply struct {
	ID       uint64
	Code     Code
	Err      error    // what Refused, or a failure to be reported, was
	Failed   int      // which operation of a multi failed, -1 if none by itself
	Made     []string // the paths that Create, Swap and Renew made
	Zxid     int64    // of Delete: the transaction
	Czxid    int64    // of Create and Get; for Create, Swap and Renew by multi, the multi's zxid
	Owner    int64    // the ephemeral owner: of Get, and of Create if it told, else 0
	Version  int32    // of Get
	Ctime    int64    // of Get: when it was made, by the servers' clock in milliseconds
	Mtime    int64    // of Get: when its data were last set, by the same clock
	Mzxid    int64    // of Get: the transaction that last set its data
	Data     []byte   // of Get
	Children []string // of List
	Access   Access   // of ReadAccess, also where it was refused

	Sent, Received time.Duration
	Conn           uint64 // which of the client's connections answered
}

// EventKind is what a watch told of a znode.
type EventKind uint8

// The events.
const (
	Deleted  EventKind = iota
	Changed            // data changed, or created: a one-shot watch has to be left again
	Children           // a child was made or deleted: a one-shot watch has to be left again
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
	Granted    SignalKind = iota // the claim holds the lock: Token, Node, Session
	Failed                       // the claim is over and nothing is held: Err
	Lost                         // the hold is over: Err
	Released                     // a released hold's znode is gone (Err nil), or can't be deleted now (Err)
	Waiting                      // the claim has a place in the queue: Ahead, Blocker, Data
	Jeopardy                     // the hold's heartbeat is overdue
	Recovered                    // the heartbeat was answered again
	Verified                     // a Guard's answer: Err nil says that the hold was held at that moment, and its operations done
	NearLimit                    // the path's sequence numbers come near their limit: Token is the number
	Downgraded                   // a Downgrade's answer: Err nil says that the hold is a reader's now, at Node
	Revoked                      // somebody asks for the lock back
)

// A Signal goes to whoever made the claim.
type Signal struct {
	ID      ID
	Kind    SignalKind
	Token   int64
	Node    string
	Nodes   []string // of Granted and Downgraded: all its znodes
	Tokens  []int64  // of Granted: the czxid of each
	Session int64
	Err     error
	Ahead   int    // how many entries are ahead
	Blocker string // the znode that is waited for
	Data    []byte // that znode's data
	Call    uint64 // which Guard or Downgrade
	Failed  int    // of Verified: which of the call's own operations Err is about, -1 if none by itself
}
