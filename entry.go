package zklock

import (
	"bytes"
	"time"

	"github.com/zklock/zklock/internal/queue"
	"github.com/zklock/zklock/zk"
)

// A Mode says what an entry of a lock is.
type Mode string

// The modes of entries.
const (
	Exclusive Mode = "exclusive" // holds alone: a mutex, a writer, a node lock
	Shared    Mode = "shared"    // holds beside others of its mode: a reader
	Permit    Mode = "permit"    // one of a semaphore's permits, or a waiter for some
	Stray     Mode = "stray"     // not a contender: it has no place in the order
)

// An Entry is one znode of a lock: a holder's, a waiter's, or a stray.
type Entry struct {
	Path    string    // the lock's path, see Lock.Path
	Node    string    // the znode's path
	Name    string    // the last level of Node
	Mode    Mode      // what it is
	Holder  bool      // it holds the lock
	Token   int64     // its czxid, or what its owner says was its czxid as a writer: the fencing token if it holds
	Session int64     // the id of the session that it belongs to; 0 if it is not ephemeral
	Since   time.Time // when it was made, by the servers' clock
	Owner   Owner     // who made it, if zklock did; else zero
	Data    string    // what another library stored in it; what cannot be read is escaped, as \u202e
	Revoked bool      // its owner was asked to give the lock back
}

// who names the entry's owner as well as can be.
func (e Entry) who() string {
	switch {
	case e.Owner.Host != "" || e.Owner.PID != 0:
		return e.Owner.String()
	case e.Data != "":
		return e.Data
	}
	return e.Name
}

// A finding is an entry with what was read of its znode.
type finding struct {
	Entry
	data    []byte // or how they begin, if this package can't have written them
	version int32
	czxid   int64 // of the znode, by which it is known
	unread  error // why it could not be read
}

// with adds what was read of the entry's znode.
func (e Entry) with(r zk.Result) finding {
	e.Token, e.Session = r.Stat.Czxid, r.Stat.EphemeralOwner
	e.Since = time.UnixMilli(r.Stat.Ctime)
	e.Owner, e.Data = parseOwner(r.Data)
	if e.Mode == Shared && e.Owner.Token > 0 && e.Owner.Token < r.Stat.Czxid { // else it is made up
		e.Token = e.Owner.Token
	}
	e.Revoked = queue.Asked(r.Data)
	f := finding{Entry: e, data: r.Data, version: r.Stat.Version, czxid: r.Stat.Czxid}
	if len(f.data) > maxData {
		f.data = bytes.Clone(f.data[:maxOwner])
	}
	return f
}
