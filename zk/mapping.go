package zk

import (
	"errors"
	"fmt"
	"strings"

	"github.com/zklock/zklock/internal/session"
	"github.com/zklock/zklock/internal/wire"
)

// codeError returns the error for a server's error code.
func codeError(code wire.ErrCode) error {
	switch code {
	case wire.ErrNoNode:
		return ErrNoNode
	case wire.ErrNodeExists:
		return ErrNodeExists
	case wire.ErrBadVersion:
		return ErrBadVersion
	case wire.ErrNotEmpty:
		return ErrNotEmpty
	case wire.ErrNoAuth:
		return ErrNoAuth
	case wire.ErrNoChildrenForEphemerals:
		return ErrNoChildrenForEphemerals
	case wire.ErrInvalidACL:
		return ErrInvalidACL
	case wire.ErrAuthFailed, wire.ErrSessionClosedRequireSASL:
		return ErrAuthFailed
	case wire.ErrSessionExpired, wire.ErrUnknownSession:
		return ErrSessionExpired
	case wire.ErrSessionMoved:
		return ErrSessionMoved
	case wire.ErrUnimplemented:
		return ErrUnimplemented
	case wire.ErrNotReadOnly:
		return ErrNotReadOnly
	case wire.ErrBadArguments:
		return ErrInvalidPath
	case wire.ErrNoWatcher:
		return ErrNoWatcher
	case wire.ErrRuntimeInconsistency:
		return ErrRolledBack
	case wire.ErrQuotaExceeded:
		return ErrQuotaExceeded
	case wire.ErrThrottled:
		return ErrThrottled
	case wire.ErrReconfigDisabled:
		return ErrReconfigDisabled
	case wire.ErrNewConfigNoQuorum:
		return ErrNewConfigNoQuorum
	case wire.ErrReconfigInProgress:
		return ErrReconfigInProgress
	}
	return fmt.Errorf("%w: %s (%d)", ErrServer, code.Name(), int32(code))
}

// faults has this package's error for each error of package session that has one.
var faults = []struct{ fault, public error }{
	{session.ErrConnectionLost, ErrConnectionLost},
	{session.ErrSessionExpired, ErrSessionExpired},
	{session.ErrClosed, ErrClosed},
	{session.ErrAuthFailed, ErrAuthFailed},
	{session.ErrTooLarge, ErrTooLarge},
	{session.ErrReplyTooLarge, ErrReplyTooLarge},
	{session.ErrInvalidOp, ErrInvalidOp},
	{session.ErrReadOnly, ErrNotReadOnly},
}

// faultError returns the error for a request without an answer.
func faultError(fault error) error {
	for _, f := range faults {
		if fault == f.fault {
			return f.public
		}
	}
	return fault
}

// outcome converts an outcome.
func outcome(o session.Outcome) Outcome {
	switch o {
	case session.No:
		return AppliedNo
	case session.Yes:
		return AppliedYes
	}
	return AppliedUnknown
}

// opError returns the error for an operation that a server answered with an error code. If the
// znode that does not exist is the chroot, the error names it, because the path of the error is
// relative to the chroot.
func opError(root chroot, o *session.Op, code wire.ErrCode) error {
	err := codeError(code)
	if root == "" || code != wire.ErrNoNode {
		return err
	}
	parent := o.Path[:strings.LastIndexByte(o.Path, '/')+1]
	if o.Path == string(root) || opName(o.Code) == "create" && parent == string(root)+"/" {
		return fmt.Errorf("%w: the chroot %s does not exist", err, string(root))
	}
	return err
}

// callError returns the *Error of a finished call, or nil.
func callError(root chroot, o *session.Op, path string, r *session.Result) error {
	if r.Fault == nil && r.Code == wire.ErrOK {
		return nil
	}
	e := &Error{Op: opName(o.Code), Path: path, applied: outcome(r.Applied)}
	if r.Fault != nil {
		e.Err = faultError(r.Fault)
	} else {
		e.Err = opError(root, o, r.Code)
		if o.Code == wire.OpReconfig && r.Code == wire.ErrBadArguments {
			e.Err = ErrInvalidMembers
		}
	}
	return e
}

// convert returns the user's form of the result of a finished call.
func convert(root chroot, o *session.Op, path string, r *session.Result) Result {
	res := Result{
		Err: callError(root, o, path, r), Zxid: r.Zxid, Stat: Stat(r.Stat), Data: r.Data,
		Children: r.Strings, Sent: r.Sent, Received: r.Received, Conn: r.Conn,
	}
	if r.Path != "" {
		res.Path = root.strip(r.Path)
	}
	if r.ACL != nil {
		res.ACL = fromWireACL(r.ACL)
	}
	if len(r.Sub) > 0 {
		res.Results = make([]Result, len(r.Sub))
		for i := range r.Sub {
			convertSub(&res.Results[i], root, &o.Sub[i], &r.Sub[i])
		}
		// The error names the znode that failed, because the multi has no path.
		if res.Err != nil {
			e := res.Err.(*Error)
			e.Path = root.strip(o.Sub[r.Failed].Path)
			if r.Fault == nil {
				e.Err = opError(root, &o.Sub[r.Failed], r.Code)
			}
		}
	}
	return res
}

// convertSub converts the result of one operation of a multi.
func convertSub(res *Result, root chroot, o *session.Op, r *session.SubResult) {
	res.Stat, res.Data, res.Children = Stat(r.Stat), r.Data, r.Children
	if r.Path != "" {
		res.Path = root.strip(r.Path)
	}
	if r.Code != wire.ErrOK {
		res.Err = &Error{Op: opName(o.Code), Path: root.strip(o.Path), Err: opError(root, o, r.Code), applied: AppliedNo}
	}
}

// convertState returns the user's form of a state change.
func convertState(s session.StateChange) StateChange {
	return StateChange{State: convertStateName(s.State), SessionID: s.SessionID, Timeout: s.Timeout,
		Sent: s.Sent, GivenUp: s.GivenUp, Conn: s.Conn, Server: s.Server, Err: stateError(s.Err)}
}

// convertStateName returns the user's form of a state.
func convertStateName(s session.State) State {
	switch s {
	case session.Connected:
		return Connected
	case session.ConnectedReadOnly:
		return ConnectedReadOnly
	case session.Expired:
		return Expired
	case session.AuthFailed:
		return AuthFailed
	case session.Closed:
		return Closed
	}
	return Disconnected
}

// stateError wraps an error of a session, so that errors.Is finds this package's
// errors in it.
func stateError(err error) error {
	if err == nil {
		return nil
	}
	return &sessionError{err}
}

// sessionError is an error of package session that matches the errors of this
// package.
type sessionError struct{ err error }

// Error returns the text of the session's error, which a log should show.
func (r *sessionError) Error() string { return r.err.Error() }

// Unwrap returns the session's error, which may wrap an error of the network or the
// server.
func (r *sessionError) Unwrap() error { return r.err }

// Is reports whether target is this package's error for the session's error. The session's error
// may wrap errors of the caller's functions, which need not be comparable.
func (r *sessionError) Is(target error) bool {
	for _, f := range faults {
		if f.public == target {
			return errors.Is(r.err, f.fault)
		}
	}
	return false
}
