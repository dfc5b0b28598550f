package zk

import (
	"errors"
	"strings"

	"github.com/zklock/zklock/internal/legible"
)

// Errors of the client. They are found with errors.Is in what methods return.
var (
	ErrNoNode                  = errors.New("zk: no such znode")
	ErrNodeExists              = errors.New("zk: the znode exists already")
	ErrBadVersion              = errors.New("zk: the znode has another version")
	ErrNotEmpty                = errors.New("zk: the znode has children")
	ErrNoAuth                  = errors.New("zk: the ACL does not permit this; add credentials")
	ErrNoChildrenForEphemerals = errors.New("zk: an ephemeral znode cannot have children")
	ErrInvalidACL              = errors.New("zk: the ACL is empty, malformed, or refers to credentials that were not added")
	ErrAuthFailed              = errors.New("zk: the server refused the credentials; make a new client with others")
	ErrSessionExpired          = errors.New("zk: the session has expired; what depended on it must be made again")
	ErrSessionMoved            = errors.New("zk: the session has moved to another server; try again")
	ErrConnectionLost          = errors.New("zk: connection lost before the answer came; the request may have been applied")
	ErrClosed                  = errors.New("zk: the client is closed")
	ErrUnimplemented           = errors.New("zk: the server does not know this operation; it may be too old")
	ErrNotReadOnly             = errors.New("zk: the server is read-only at present; wait until it has a quorum")
	ErrInvalidPath             = errors.New("zk: invalid path")
	ErrInvalidServers          = errors.New("zk: invalid connection string")
	ErrInvalidOptions          = errors.New("zk: invalid options")
	ErrInvalidOp               = errors.New("zk: invalid operation")
	ErrTooLarge                = errors.New("zk: the request is larger than servers accept; store less in the znode")
	ErrNoWatcher               = errors.New("zk: there is no such watch")
	ErrRolledBack              = errors.New("zk: not done, because another operation of the same multi failed")
	ErrQuotaExceeded           = errors.New("zk: a quota would be exceeded")
	ErrThrottled               = errors.New("zk: the server is overloaded and refused the request; try later")
	ErrReconfigDisabled        = errors.New("zk: the server does not permit reconfiguration")
	ErrNotConfirmed            = errors.New("zk: the server has not confirmed the end of the session; it ends by its timeout")
	ErrTLSRequired             = errors.New("zk: the port speaks TLS: set the TLS option")
	ErrServer                  = errors.New("zk: the server failed to carry out the request")
)

// Error is what every failing method of this package returns.
type Error struct {
	Op   string // what was tried: "create", "dial", ...
	Path string // the znode, or the servers of a dial; may be empty
	Err  error  // why, see the Err variables and the errors of package context

	applied Outcome // AppliedUnknown unless known
}

// Error returns the operation, the path and the reason, in one line. What servers wrote
// into it, as into a certificate, is escaped where a terminal would obey it.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("zk: ")
	b.WriteString(e.Op)
	if e.Path != "" {
		b.WriteString(" " + legible.Path(e.Path))
	}
	b.WriteString(": ")
	b.WriteString(legible.Text(strings.TrimPrefix(e.Err.Error(), "zk: ")))
	return b.String()
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// Outcome says whether a request was applied by the servers.
type Outcome int

// What can be known of a request.
const (
	AppliedUnknown Outcome = iota // it was sent and its answer never came
	AppliedNo                     // it was not applied and never will be
	AppliedYes                    // it was applied
)

// String returns "unknown", "no" or "yes".
func (o Outcome) String() string {
	switch o {
	case AppliedNo:
		return "no"
	case AppliedYes:
		return "yes"
	}
	return "unknown"
}

// Applied reports whether the request that returned err was applied: AppliedYes
// for nil, AppliedNo where the server refused it or it never left this
// process, else AppliedUnknown. Errors of other packages are unknown.
func Applied(err error) Outcome {
	if err == nil {
		return AppliedYes
	}
	var e *Error
	if errors.As(err, &e) {
		return e.applied
	}
	return AppliedUnknown
}
