package wire

import "fmt"

// ErrCode is the error code in an answer's header or in one result of a multi
// (org.apache.zookeeper.KeeperException.Code). It is an error value that compares
// with ==, so errors.Is finds it. Zero is success and must not be returned as an
// error.
type ErrCode int32

// ZooKeeper's error codes. Those above ErrAPI are system errors; the others concern
// one operation.
const (
	ErrOK                       ErrCode = 0
	ErrSystem                   ErrCode = -1
	ErrRuntimeInconsistency     ErrCode = -2 // in a multi: not executed, because another operation failed
	ErrDataInconsistency        ErrCode = -3
	ErrConnectionLoss           ErrCode = -4
	ErrMarshalling              ErrCode = -5
	ErrUnimplemented            ErrCode = -6
	ErrOperationTimeout         ErrCode = -7
	ErrBadArguments             ErrCode = -8
	ErrUnknownSession           ErrCode = -12
	ErrNewConfigNoQuorum        ErrCode = -13
	ErrReconfigInProgress       ErrCode = -14
	ErrAPI                      ErrCode = -100
	ErrNoNode                   ErrCode = -101
	ErrNoAuth                   ErrCode = -102
	ErrBadVersion               ErrCode = -103
	ErrNoChildrenForEphemerals  ErrCode = -108
	ErrNodeExists               ErrCode = -110
	ErrNotEmpty                 ErrCode = -111
	ErrSessionExpired           ErrCode = -112
	ErrInvalidCallback          ErrCode = -113
	ErrInvalidACL               ErrCode = -114
	ErrAuthFailed               ErrCode = -115
	ErrSessionMoved             ErrCode = -118
	ErrNotReadOnly              ErrCode = -119
	ErrEphemeralOnLocalSession  ErrCode = -120
	ErrNoWatcher                ErrCode = -121
	ErrRequestTimeout           ErrCode = -122
	ErrReconfigDisabled         ErrCode = -123
	ErrSessionClosedRequireSASL ErrCode = -124
	ErrQuotaExceeded            ErrCode = -125
	ErrThrottled                ErrCode = -127
)

// Error returns "wire: server answered", ZooKeeper's name, and the number.
func (e ErrCode) Error() string {
	return fmt.Sprintf("wire: server answered %s (%d)", e.Name(), int32(e))
}

// Name returns ZooKeeper's name for the code without the word Exception, such as
// "NoNode" or "BadVersion". It returns "Unknown" for a code that ZooKeeper does not
// define.
func (e ErrCode) Name() string {
	if e > ErrAPI {
		return e.systemName()
	}
	switch e {
	case ErrAPI:
		return "APIError"
	case ErrNoNode:
		return "NoNode"
	case ErrNoAuth:
		return "NoAuth"
	case ErrBadVersion:
		return "BadVersion"
	case ErrNoChildrenForEphemerals:
		return "NoChildrenForEphemerals"
	case ErrNodeExists:
		return "NodeExists"
	case ErrNotEmpty:
		return "NotEmpty"
	case ErrSessionExpired:
		return "SessionExpired"
	case ErrInvalidCallback:
		return "InvalidCallback"
	case ErrInvalidACL:
		return "InvalidACL"
	case ErrAuthFailed:
		return "AuthFailed"
	case ErrSessionMoved:
		return "SessionMoved"
	case ErrNotReadOnly:
		return "NotReadOnly"
	case ErrEphemeralOnLocalSession:
		return "EphemeralOnLocalSession"
	case ErrNoWatcher:
		return "NoWatcher"
	case ErrRequestTimeout:
		return "RequestTimeout"
	case ErrReconfigDisabled:
		return "ReconfigDisabled"
	case ErrSessionClosedRequireSASL:
		return "SessionClosedRequireSaslAuth"
	case ErrQuotaExceeded:
		return "QuotaExceeded"
	case ErrThrottled:
		return "ThrottledOp"
	}
	return "Unknown"
}

// systemName returns the name of a code between success and ErrAPI.
func (e ErrCode) systemName() string {
	switch e {
	case ErrOK:
		return "OK"
	case ErrSystem:
		return "SystemError"
	case ErrRuntimeInconsistency:
		return "RuntimeInconsistency"
	case ErrDataInconsistency:
		return "DataInconsistency"
	case ErrConnectionLoss:
		return "ConnectionLoss"
	case ErrMarshalling:
		return "MarshallingError"
	case ErrUnimplemented:
		return "Unimplemented"
	case ErrOperationTimeout:
		return "OperationTimeout"
	case ErrBadArguments:
		return "BadArguments"
	case ErrUnknownSession:
		return "UnknownSession"
	case ErrNewConfigNoQuorum:
		return "NewConfigNoQuorum"
	case ErrReconfigInProgress:
		return "ReconfigInProgress"
	}
	return "Unknown"
}
