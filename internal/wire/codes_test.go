package wire_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/zklock/zklock/internal/wire"
)

// TestErrCodeNames checks the number and the name of every code. The names are those of the
// KeeperException classes without the word Exception.
func TestErrCodeNames(t *testing.T) {
	tests := []struct {
		err    wire.ErrCode
		number int32
		name   string
	}{
		{wire.ErrOK, 0, "OK"},
		{wire.ErrSystem, -1, "SystemError"},
		{wire.ErrRuntimeInconsistency, -2, "RuntimeInconsistency"},
		{wire.ErrDataInconsistency, -3, "DataInconsistency"},
		{wire.ErrConnectionLoss, -4, "ConnectionLoss"},
		{wire.ErrMarshalling, -5, "MarshallingError"},
		{wire.ErrUnimplemented, -6, "Unimplemented"},
		{wire.ErrOperationTimeout, -7, "OperationTimeout"},
		{wire.ErrBadArguments, -8, "BadArguments"},
		{wire.ErrUnknownSession, -12, "UnknownSession"},
		{wire.ErrNewConfigNoQuorum, -13, "NewConfigNoQuorum"},
		{wire.ErrReconfigInProgress, -14, "ReconfigInProgress"},
		{wire.ErrAPI, -100, "APIError"},
		{wire.ErrNoNode, -101, "NoNode"},
		{wire.ErrNoAuth, -102, "NoAuth"},
		{wire.ErrBadVersion, -103, "BadVersion"},
		{wire.ErrNoChildrenForEphemerals, -108, "NoChildrenForEphemerals"},
		{wire.ErrNodeExists, -110, "NodeExists"},
		{wire.ErrNotEmpty, -111, "NotEmpty"},
		{wire.ErrSessionExpired, -112, "SessionExpired"},
		{wire.ErrInvalidCallback, -113, "InvalidCallback"},
		{wire.ErrInvalidACL, -114, "InvalidACL"},
		{wire.ErrAuthFailed, -115, "AuthFailed"},
		{wire.ErrSessionMoved, -118, "SessionMoved"},
		{wire.ErrNotReadOnly, -119, "NotReadOnly"},
		{wire.ErrEphemeralOnLocalSession, -120, "EphemeralOnLocalSession"},
		{wire.ErrNoWatcher, -121, "NoWatcher"},
		{wire.ErrRequestTimeout, -122, "RequestTimeout"},
		{wire.ErrReconfigDisabled, -123, "ReconfigDisabled"},
		{wire.ErrSessionClosedRequireSASL, -124, "SessionClosedRequireSaslAuth"},
		{wire.ErrQuotaExceeded, -125, "QuotaExceeded"},
		{wire.ErrThrottled, -127, "ThrottledOp"},
		{wire.ErrCode(-9), -9, "Unknown"},
		{wire.ErrCode(-104), -104, "Unknown"},
		{wire.ErrCode(77), 77, "Unknown"},
	}
	for _, test := range tests {
		if int32(test.err) != test.number {
			t.Errorf("%s is %d, want %d", test.name, int32(test.err), test.number)
		}
		if got := test.err.Name(); got != test.name {
			t.Errorf("%d is named %q, want %q", test.number, got, test.name)
		}
		want := fmt.Sprintf("wire: server answered %s (%d)", test.name, test.number)
		if got := test.err.Error(); got != want {
			t.Errorf("error %q, want %q", got, want)
		}
	}
}

func TestErrorsIsFindsErrCode(t *testing.T) {
	err := fmt.Errorf("create /a: %w", wire.ErrNodeExists)
	if !errors.Is(err, wire.ErrNodeExists) || errors.Is(err, wire.ErrNoNode) {
		t.Errorf("errors.Is finds the wrong code in %v", err)
	}
	var code wire.ErrCode
	if !errors.As(err, &code) || code != wire.ErrNodeExists {
		t.Errorf("%v has code %d", err, int32(code))
	}
}

// TestOpCodeNames checks the number in ZooDefs.OpCode and the name of every code.
func TestOpCodeNames(t *testing.T) {
	names := map[wire.OpCode]string{
		1: "create", 2: "delete", 3: "exists", 4: "getData", 5: "setData", 6: "getACL", 7: "setACL",
		8: "getChildren", 9: "sync", 11: "ping", 12: "getChildren2", 13: "check", 14: "multi",
		15: "create2", 16: "reconfig", 17: "checkWatches", 18: "removeWatches", 19: "createContainer",
		20: "deleteContainer", 21: "createTTL", 22: "multiRead", 100: "auth", 101: "setWatches",
		102: "sasl", 103: "getEphemerals", 104: "getAllChildrenNumber", 105: "setWatches2",
		106: "addWatch", 107: "whoAmI", -10: "createSession", -11: "closeSession", -1: "error",
		0: "op0", 10: "op10", 99: "op99", 108: "op108", -2: "op-2", -2147483648: "op-2147483648",
	}
	for op, want := range names {
		if got := op.String(); got != want {
			t.Errorf("%d is named %q, want %q", int32(op), got, want)
		}
	}
	for _, op := range operations() {
		if names[op] == "" || strings.HasPrefix(names[op], "op") {
			t.Errorf("operation %d has no name in the table", int32(op))
		}
	}
}

func TestCreateModes(t *testing.T) {
	tests := []struct {
		mode                                         wire.CreateMode
		valid, ephemeral, sequential, container, ttl bool
	}{
		{-1, false, false, false, false, false},
		{wire.ModePersistent, true, false, false, false, false},
		{wire.ModeEphemeral, true, true, false, false, false},
		{wire.ModePersistentSequential, true, false, true, false, false},
		{wire.ModeEphemeralSequential, true, true, true, false, false},
		{wire.ModeContainer, true, false, false, true, false},
		{wire.ModePersistentTTL, true, false, false, false, true},
		{wire.ModePersistentSequentialTTL, true, false, true, false, true},
		{7, false, false, false, false, false},
	}
	for _, test := range tests {
		m := test.mode
		got := [...]bool{m.Valid(), m.Ephemeral(), m.Sequential(), m.Container(), m.TTL()}
		want := [...]bool{test.valid, test.ephemeral, test.sequential, test.container, test.ttl}
		if got != want {
			t.Errorf("mode %d: valid, ephemeral, sequential, container, ttl = %v, want %v", m, got, want)
		}
	}
}

// TestOperationsHaveRecords checks the types of the records that operations share.
func TestOperationsHaveRecords(t *testing.T) {
	known := map[wire.OpCode]bool{}
	for _, op := range operations() {
		known[op] = true
	}
	for op := wire.OpCode(-20); op < 130; op++ {
		if got := wire.NewRequest(op) != nil; got != known[op] {
			t.Errorf("%v: has a request: %v, want %v", op, got, known[op])
		}
		if got := wire.NewResponse(op) != nil; got != known[op] {
			t.Errorf("%v: has a response: %v, want %v", op, got, known[op])
		}
	}
	same := []struct {
		op        wire.OpCode
		req, resp wire.Record
	}{
		{wire.OpCreate, new(wire.CreateRequest), new(wire.CreateResponse)},
		{wire.OpCreate2, new(wire.CreateRequest), new(wire.Create2Response)},
		{wire.OpCreateContainer, new(wire.CreateRequest), new(wire.Create2Response)},
		{wire.OpCreateTTL, new(wire.CreateTTLRequest), new(wire.Create2Response)},
		{wire.OpMulti, new(wire.MultiRequest), new(wire.MultiResponse)},
		{wire.OpMultiRead, new(wire.MultiReadRequest), new(wire.MultiResponse)},
		{wire.OpReconfig, new(wire.ReconfigRequest), new(wire.GetDataResponse)},
		{wire.OpAddWatch, new(wire.AddWatchRequest), new(wire.ErrorResponse)},
		{wire.OpWhoAmI, new(wire.Empty), new(wire.WhoAmIResponse)},
		{wire.OpCloseSession, new(wire.Empty), new(wire.Empty)},
	}
	for _, row := range same {
		if got := wire.NewRequest(row.op); reflect.TypeOf(got) != reflect.TypeOf(row.req) {
			t.Errorf("%v: request %T, want %T", row.op, got, row.req)
		}
		if got := wire.NewResponse(row.op); reflect.TypeOf(got) != reflect.TypeOf(row.resp) {
			t.Errorf("%v: response %T, want %T", row.op, got, row.resp)
		}
	}
}
