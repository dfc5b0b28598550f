package zkserver

import "errors"

// ErrServerClosed is returned by Serve, ServeConn and DialContext after
// Shutdown or Close.
var ErrServerClosed = errors.New("zkserver: server closed")

// ErrStorage is wrapped by the error that Serve returns after a failed write
// or sync of the log. The server has stopped: nothing that was not on disk
// was acknowledged. Mend the disk, then start a new server on the directory.
var ErrStorage = errors.New("zkserver: storage failed")

// errHandshake ends a connection that sent no whole connect request in time.
var errHandshake = errors.New("zkserver: no connect request within the handshake timeout")

// errTooSlow ends a connection whose client does not read what it is sent.
var errTooSlow = errors.New("zkserver: client does not read its replies and events")

// Why a connection is refused before anything is read from it.
var (
	errPerAddress = errors.New("zkserver: too many connections from one address, the limit is MaxClientConns")
	errTotal      = errors.New("zkserver: too many connections, the limit is MaxConns")
	errByOption   = errors.New("zkserver: refused by the Accept option")
)
