package session

import (
	"errors"
	"fmt"
)

// Reasons why a call has no answer, or why a connection or session ended.
var (
	ErrConnectionLost = errors.New("session: connection lost before the answer came")
	ErrSessionExpired = errors.New("session: the session is over")
	ErrClosed         = errors.New("session: closed")
	ErrAuthFailed     = errors.New("session: authentication failed")
	ErrTooLarge       = errors.New("session: request larger than servers accept")
	ErrReplyTooLarge  = errors.New("session: answer larger than the client accepts")
	ErrInvalidOp      = errors.New("session: operation that must not be sent")
	// ErrProtocol: the peer does not speak the protocol, or violated it.
	ErrProtocol = errors.New("session: protocol error")
	// ErrTimeout: the peer did not answer in time.
	ErrTimeout = errors.New("session: no answer in time")
	// ErrRefused: the server did not accept the connection as requested.
	ErrRefused = errors.New("session: refused by the server")
	// ErrReadOnly: the server refused because it is read-only.
	ErrReadOnly = fmt.Errorf("%w: the server is read-only", ErrRefused)
	// ErrReadWriteFound: the client left a read-only server because it found a
	// read-write one.
	ErrReadWriteFound = errors.New("session: a read-write server was found")
	// ErrOldServer: the client left a server that does not know a request, and that
	// would not answer the requests after it.
	ErrOldServer = errors.New("session: the server is too old to know the request")
	// ErrServerRemoved: the client left a server that its new list does not contain.
	ErrServerRemoved = errors.New("session: the server was removed from the list")
)
