package zk

import (
	"errors"
	"strings"

	"github.com/zklock/zklock/internal/legible"
)

// Errors of the client. Use errors.Is to find them in the errors that methods return.
var (
	ErrNoNode                  = errors.New("zk: no such znode")
	ErrNodeExists              = errors.New("zk: the znode exists already")
	ErrBadVersion              = errors.New("zk: the znode has another version")
	ErrNotEmpty                = errors.New("zk: the znode has children")
	ErrNoAuth                  = errors.New("zk: the ACL does not permit this; add credentials")
	ErrNoChildrenForEphemerals = errors.New("zk: an ephemeral znode cannot have children")
	ErrInvalidACL              = errors.New("zk: the ACL is empty, malformed, or refers to credentials that were not added")
	ErrAuthFailed              = errors.New("zk: authentication failed; create a new client with other credentials")
	ErrSessionExpired          = errors.New("zk: the session has expired; its ephemeral znodes and watches are gone")
	ErrSessionMoved            = errors.New("zk: the session has moved to another server; try again")
	ErrConnectionLost          = errors.New("zk: connection lost before the answer came; the request may have been applied")
	ErrClosed                  = errors.New("zk: the client is closed")
	ErrUnimplemented           = errors.New("zk: the server does not know this operation; it may be too old")
	ErrNotReadOnly             = errors.New("zk: the server is read-only; wait until it has a quorum")
	ErrInvalidPath             = errors.New("zk: invalid path")
	ErrInvalidServers          = errors.New("zk: invalid connection string")
	ErrInvalidOptions          = errors.New("zk: invalid options")
	ErrInvalidOp               = errors.New("zk: invalid operation")
	ErrTooLarge                = errors.New("zk: the request is larger than the servers accept (Options.MaxRequest): send less, or raise their jute.maxbuffer")
	ErrReplyTooLarge           = errors.New("zk: the answer is larger than the client accepts (Options.MaxReply)")
	ErrNoWatcher               = errors.New("zk: there is no such watch")
	ErrRolledBack              = errors.New("zk: not executed, because another operation of the same multi failed")
	ErrQuotaExceeded           = errors.New("zk: the request would exceed a quota")
	ErrThrottled               = errors.New("zk: the server is overloaded and refused the request; try again later")
	ErrReconfigDisabled        = errors.New("zk: the server does not permit reconfiguration")
	ErrNewConfigNoQuorum       = errors.New("zk: no quorum of the new members follows the leader; start them, and try again")
	ErrReconfigInProgress      = errors.New("zk: another reconfiguration is in progress; try again when it has ended")
	ErrInvalidMembers          = errors.New("zk: the servers refused the list of members; write each as server.1=host:2888:3888;2181")
	ErrNotConfirmed            = errors.New("zk: the server has not confirmed the end of the session; it ends by its timeout")
	ErrTLSRequired             = errors.New("zk: the port speaks TLS: set the TLS option")
	ErrServer                  = errors.New("zk: the server failed to execute the request")
)

// Error is the error type of every method of this package.
type Error struct {
	Op   string // the operation: "create", "dial", ...
	Path string // the znode, or the servers of a dial; may be empty
	Err  error  // the cause: one of the Err variables, or an error of package context

	applied Outcome // AppliedUnknown unless known
}

// Error returns the operation, the path, and the cause in one line. Text from
// servers, such as from a certificate, is escaped if a terminal would interpret it.
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

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Outcome says whether the servers applied a request.
type Outcome int

// The outcomes of a request.
const (
	AppliedUnknown Outcome = iota // the request was sent and its answer never arrived
	AppliedNo                     // the request was not applied and never will be
	AppliedYes                    // the request was applied
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

// Applied returns whether the request that returned err was applied. It returns
// AppliedYes for nil, AppliedNo if the server refused the request or it was never
// sent, and AppliedUnknown otherwise, also for errors of other packages.
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
