package session

import (
	"errors"
	"fmt"
)

// The reasons why a call has no answer, or why a connection or session ended.
var (
	ErrConnectionLost = errors.New("session: connection lost before the answer came")
	ErrSessionExpired = errors.New("session: the session is over")
	ErrClosed         = errors.New("session: closed")
	ErrAuthFailed     = errors.New("session: the server refused the credentials")
	ErrTooLarge       = errors.New("session: request larger than servers accept")
	ErrInvalidOp      = errors.New("session: operation that must not be sent")
	// ErrProtocol: the peer does not speak the protocol or broke its rules.
	ErrProtocol = errors.New("session: protocol error")
	// ErrTimeout: the peer did not answer in time.
	ErrTimeout = errors.New("session: no answer in time")
	// ErrRefused: the server did not take the connection as it was asked to.
	ErrRefused = errors.New("session: refused by the server")
	// ErrReadOnly: it did not because it is read-only.
	ErrReadOnly = fmt.Errorf("%w: the server is read-only", ErrRefused)
	// ErrReadWriteFound: left a read-only server because a full one was found.
	ErrReadWriteFound = errors.New("session: a read-write server was found")
)
