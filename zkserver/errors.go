package zkserver

import (
	"errors"
	"fmt"
)

// ErrServerClosed is returned by Serve, ServeConn, and DialContext after Shutdown or Close.
var ErrServerClosed = errors.New("zkserver: server closed")

// ErrStorage is wrapped by errors about a failed write or sync of the log. The server has
// acknowledged nothing that was not on disk, and acknowledges nothing more. It becomes
// read-only, see [Stats].ReadOnly, and Serve returns the error when the server is shut
// down.
//
// The server ends by itself, Done is closed, and Serve returns at once in four cases: the
// files cannot be read either, the lock on the directory was lost, another process changed
// the log, or Options.EndOnStorageError is set. Fix the disk, then start a new server on the
// directory.
var ErrStorage = errors.New("zkserver: storage failed")

// errReadOnlyWrote cannot happen: a read-only tree makes no records.
var errReadOnlyWrote = errors.New("zkserver: a read-only tree made a record")

// errHandshake ends a connection that sent no complete connect request in time.
var errHandshake = errors.New("zkserver: no connect request in time")

// errEvicted ends a half-open connection that a new connection replaces.
var errEvicted = fmt.Errorf("%w, and a new connection replaced this one", errHandshake)

// errTooSlow ends a connection whose client does not read its output.
var errTooSlow = errors.New("zkserver: the client does not read its replies and events")

// Reasons to refuse a connection before reading from it.
var (
	errPerAddress = errors.New("zkserver: too many connections from one address; to permit more, raise maxClientCnxns (zklock serve --max-conns-per-address)")
	errTotal      = errors.New("zkserver: too many connections; to permit more, raise maxCnxns (zklock serve --max-conns)")
	errByOption   = errors.New("zkserver: refused by the Accept option")

	errDescriptors = errors.New("zkserver: too many connections for the process's limit of open files; raise it (ulimit -n, or LimitNOFILE= of systemd)")
)

// ErrInvalidOptions is wrapped by errors of New about a field of Options.
var ErrInvalidOptions = errors.New("zkserver: invalid option")
