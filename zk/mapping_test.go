package zk

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/zklock/zklock/internal/session"
	"github.com/zklock/zklock/internal/wire"
)

func TestEveryCodeHasAnError(t *testing.T) {
	for code, want := range map[wire.ErrCode]error{
		wire.ErrNoNode: ErrNoNode, wire.ErrNodeExists: ErrNodeExists, wire.ErrBadVersion: ErrBadVersion,
		wire.ErrNotEmpty: ErrNotEmpty, wire.ErrNoAuth: ErrNoAuth, wire.ErrNoChildrenForEphemerals: ErrNoChildrenForEphemerals,
		wire.ErrInvalidACL: ErrInvalidACL, wire.ErrAuthFailed: ErrAuthFailed, wire.ErrSessionClosedRequireSASL: ErrAuthFailed,
		wire.ErrSessionExpired: ErrSessionExpired, wire.ErrUnknownSession: ErrSessionExpired,
		wire.ErrSessionMoved: ErrSessionMoved, wire.ErrUnimplemented: ErrUnimplemented, wire.ErrNotReadOnly: ErrNotReadOnly,
		wire.ErrBadArguments: ErrInvalidPath, wire.ErrNoWatcher: ErrNoWatcher, wire.ErrRuntimeInconsistency: ErrRolledBack,
		wire.ErrQuotaExceeded: ErrQuotaExceeded, wire.ErrThrottled: ErrThrottled, wire.ErrReconfigDisabled: ErrReconfigDisabled,
		wire.ErrNewConfigNoQuorum: ErrNewConfigNoQuorum, wire.ErrReconfigInProgress: ErrReconfigInProgress,
		wire.ErrSystem: ErrServer, wire.ErrDataInconsistency: ErrServer, wire.ErrRequestTimeout: ErrServer, -9999: ErrServer,
	} {
		if got := codeError(code); !errors.Is(got, want) {
			t.Errorf("%v becomes %v, want %v", code, got, want)
		}
	}
	// An unknown code is reported by its number.
	if text := codeError(-9999).Error(); !strings.Contains(text, "-9999") {
		t.Error(text)
	}
}

func TestEveryFaultHasAnError(t *testing.T) {
	for fault, want := range map[error]error{
		session.ErrConnectionLost: ErrConnectionLost, session.ErrSessionExpired: ErrSessionExpired, session.ErrClosed: ErrClosed,
		session.ErrAuthFailed: ErrAuthFailed, session.ErrTooLarge: ErrTooLarge, session.ErrReplyTooLarge: ErrReplyTooLarge, session.ErrInvalidOp: ErrInvalidOp,
		session.ErrReadOnly: ErrNotReadOnly,
	} {
		r := session.Result{Fault: fault, Applied: session.No}
		err := callError("", &session.Op{Code: wire.OpGetData}, "/a", &r)
		if !errors.Is(err, want) || Applied(err) != AppliedNo || !strings.HasPrefix(err.Error(), "zk: get /a: ") {
			t.Errorf("%v becomes %v, want %v", fault, err, want)
		}
		if err := stateError(fmt.Errorf("%w: more: %w", fault, wire.ErrAuthFailed)); !errors.Is(err, want) {
			t.Errorf("state: %v becomes %v, want %v", fault, err, want)
		}
	}
	if stateError(nil) != nil || errors.Is(stateError(errors.New("x")), ErrClosed) {
		t.Error("a nil error or an unknown one is converted")
	}
}

func TestOutcomesAreConverted(t *testing.T) {
	for from, want := range map[session.Outcome]Outcome{session.No: AppliedNo, session.Yes: AppliedYes, session.Unknown: AppliedUnknown} {
		if got := outcome(from); got != want {
			t.Errorf("%d becomes %v, want %v", from, got, want)
		}
	}
}

func TestStatesAreConverted(t *testing.T) {
	for from, want := range map[session.State]State{
		session.Disconnected: Disconnected, session.Connected: Connected, session.ConnectedReadOnly: ConnectedReadOnly,
		session.Expired: Expired, session.AuthFailed: AuthFailed, session.Closed: Closed,
	} {
		if got := convertStateName(from); got != want {
			t.Errorf("%d becomes %v, want %v", from, got, want)
		}
	}
}

func TestOpenACLIsEncodedAsNil(t *testing.T) {
	if wireACL(nil) != nil || wireACL(OpenACL()) != nil {
		t.Error("the open list is not nil")
	}
	if acl := wireACL([]ACL{}); acl == nil || len(acl) != 0 {
		t.Error("an empty list became the open one")
	}
	mine := []ACL{{PermRead | PermWrite, "digest", "u:x"}, {PermAll, "world", "anyone"}}
	back := fromWireACL(wireACL(mine))
	if len(back) != 2 || back[0] != mine[0] || back[1] != mine[1] {
		t.Errorf("%+v", back)
	}
}

func TestOperationsHaveNames(t *testing.T) {
	for code, want := range map[wire.OpCode]string{
		wire.OpCreate2: "create", wire.OpCreateTTL: "create", wire.OpDelete: "delete", wire.OpExists: "exists", wire.OpGetData: "get",
		wire.OpSetData: "set", wire.OpGetChildren2: "children", wire.OpSync: "sync", wire.OpMulti: "multi", wire.OpMultiRead: "multi",
		wire.OpGetACL: "get ACL", wire.OpSetACL: "set ACL", wire.OpAuth: "add auth", wire.OpAddWatch: "add watch",
		wire.OpRemoveWatches: "remove watches", wire.OpSetWatches: "set watches", wire.OpGetEphemerals: "ephemerals", wire.OpWhoAmI: "who am I",
		wire.OpGetAllChildrenNumber: "all children number", wire.OpCheck: "check",
	} {
		if got := opName(code); got != want {
			t.Errorf("%v is called %q, want %q", code, got, want)
		}
	}
}
