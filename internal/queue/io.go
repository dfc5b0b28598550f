package queue

import "time"

// ID identifies one Acquire and the hold that it becomes. IDs count up from 1 and are
// never reused.
type ID uint64

// RequestKind is what a Request asks of ZooKeeper.
type RequestKind uint8

// The requests.
const (
	Create       RequestKind = iota // Creates: one by create, several in one multi
	List                            // getChildren: Path, Watch
	Get                             // getData: Path, Watch
	Set                             // setData: Path, Data, Version
	Delete                          // delete of any version: Path
	Check                           // a multi of one check(path, any version) for each of Paths; none is an empty multi
	Make                            // create of a parent, as a container or persistent: Path, Container
	Swap                            // one multi that creates Creates and deletes Paths, each at its version of Versions
	Guard                           // one multi of a check for each of Paths, and the operations of the Call
	Sync                            // sync: Path
	Renew                           // one multi that creates Creates and deletes Paths of former holds
	ReadAccess                      // getACL: Path
	Ping                            // exists: Path, whose answer does not matter
	SetWatches                      // setWatches: data watches on Paths, an exists watch on Path if it is not empty, relative to Zxid
	Unwatch                         // removeWatches: Path, its data and exists watch; see [Core.removeWatch]
	MarkedDelete                    // one multi that creates Creates and deletes Paths, of which the first is the created mark
	SetAll                          // setData of each of Paths with its version of Versions: Data; several in one multi
)

// A Creation is one znode that Create, Swap or Renew creates.
type Creation struct {
	Path       string
	Data       []byte
	Sequential bool // the server appends a sequence number
	Persistent bool // otherwise ephemeral
	Access     Access
}

// A Request is one request to ZooKeeper. Requests are sent in the order of the output.
type Request struct {
	ID        uint64
	Session   int64 // the only session in which it may be sent; 0 if there is none
	Kind      RequestKind
	Path      string
	Paths     []string
	Creates   []Creation
	Data      []byte
	Version   int32
	Versions  []int32 // of SetAll and Swap; -1 is any version
	Zxid      int64
	Watch     bool
	Container bool
	Access    Access // of Make
	Above     bool   // of Make: above the locks' znodes, where other clients may have locks
	Call      uint64 // whose operations Guard carries
	// Batchable permits a batch: one transaction with other requests of the same moment,
	// no two of which create znodes below one parent. If another request of the batch
	// fails, the answer is Undone.
	Batchable bool
}

// Code is how a request ended.
type Code uint8

// The outcomes of a request.
const (
	OK            Code = iota
	NoNode             // the znode, or a create's parent, does not exist
	NodeExists         // the znode already exists
	BadVersion         // the znode has another version than the request expects
	Unimplemented      // the server does not know the operation
	NotApplied         // certainly not applied, may be retried: never sent, throttled, moved
	Undone             // certainly not applied, because another request of the batch failed
	Unknown            // sent, and the connection was lost before the answer: may have been applied
	SessionOver        // the session ended
	Refused            // a permanent error, see Err
)

// A Reply is the outcome of the Request with its ID.
type Reply struct {
	ID       uint64
	Code     Code
	Err      error    // the error of Refused, or of a failure to report
	Failed   int      // the index of the operation that failed in a multi, -1 if none by itself
	TooLarge bool     // it was not sent, because it is larger than servers accept
	Made     []string // the paths that Create, Swap and Renew created
	Zxid     int64    // of Delete: the transaction
	Czxid    int64    // of Create and Get; for Create, Swap and Renew by multi, the multi's zxid
	Owner    int64    // the ephemeral owner: of Get, and of Create if the answer has it, else 0
	Version  int32    // of Get
	Ctime    int64    // of Get: when it was created, by the servers' clock in milliseconds
	Mtime    int64    // of Get: when its data were last set, by the same clock
	Mzxid    int64    // of Get: the transaction that last set its data
	Data     []byte   // of Get
	Children []string // of List
	Access   Access   // of ReadAccess, also if it was refused

	Sent, Received time.Duration
	Conn           uint64 // which of the client's connections answered
}

// EventKind is the kind of a watch event.
type EventKind uint8

// The events.
const (
	Deleted EventKind = iota
	Changed           // data changed: a one-shot watch has to be set again
	Created
	Children // a child was created or deleted: a one-shot watch has to be set again
)

// SessionState is the state of the session.
type SessionState uint8

// The states of a session.
const (
	Connected    SessionState = iota // to a server that accepts writes
	Disconnected                     // or connected to a read-only server
	Expired                          // the session has ended; another will follow
	Closed                           // the client is closed or permanently refused; no other session follows
)

// A SessionChange reports the session's state.
type SessionChange struct {
	State   SessionState
	Session int64
	Timeout time.Duration // negotiated
	Sent    time.Duration // when the ConnectRequest was sent
	GivenUp time.Duration // when a ConnectRequest of this session was last left without an answer, or 0
	Conn    uint64
	Err     error // why, for Closed
	Left    error // for Closed: why the session's znodes may still exist; nil if they are gone
}

// SignalKind is the kind of a Signal.
type SignalKind uint8

// The signals.
const (
	Granted    SignalKind = iota // the acquire holds the lock: Token, Node, Session
	Failed                       // the acquire has ended and holds nothing: Err
	Lost                         // the hold has ended: Err
	Released                     // a released hold's znode is gone (Err nil), or cannot be deleted now (Err)
	Waiting                      // the acquire has a position in the queue: Ahead, Blocker, Data
	Jeopardy                     // the hold's heartbeat is overdue
	Recovered                    // the heartbeat was answered again
	Verified                     // a Guard's answer: if Err is nil, the hold was held at that moment and the operations were applied
	NearLimit                    // the path's sequence numbers are near their limit: Token is the number
	Downgraded                   // a Downgrade's answer: if Err is nil, the hold is a reader's now, at Node
	Revoked                      // another client requests the release of the lock
	DataSet                      // a SetData's answer: if Err is nil, the hold's znodes have the data
)

// A Signal is a message to the caller that started the acquire.
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
	Blocker string // the znode that the acquire waits for; of Failed with ErrLocked, the holder's, if known
	Data    []byte // that znode's data
	Call    uint64 // which Guard, Downgrade, or SetData
	Failed  int    // of Verified: which of the call's operations failed, -1 if none by itself
}
