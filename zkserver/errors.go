package zkserver

import (
	"errors"
	"fmt"
)

// ErrServerClosed is returned by Serve, ServeConn and DialContext after
// Shutdown or Close.
var ErrServerClosed = errors.New("zkserver: server closed")

// ErrStorage is wrapped by the errors that tell of a failed write or sync of the
// log. Nothing that was not on disk was acknowledged, and nothing is any more:
// the server answers reads alone, see [Stats].ReadOnly, and Serve returns the
// error when it is shut down. If the files could not be read either, if their lock
// was lost, or with Options.EndOnStorageError, the server has ended by itself,
// which Done tells, and Serve returns at once. Mend the disk, then start a new
// server on the directory.
var ErrStorage = errors.New("zkserver: storage failed")

// errReadOnlyWrote can't happen: a read-only tree makes no records.
var errReadOnlyWrote = errors.New("zkserver: a read-only tree made a record")

// errHandshake ends a connection that sent no whole connect request in time.
var errHandshake = errors.New("zkserver: no connect request in time")

// errShed ends a connection that sent no connect request when another one needed its
// place.
var errShed = fmt.Errorf("%w, and another connection needed its place", errHandshake)

// errTooSlow ends a connection whose client does not read what it is sent.
var errTooSlow = errors.New("zkserver: client does not read its replies and events")

// Why a connection is refused before anything is read from it.
var (
	errPerAddress = errors.New("zkserver: too many connections from one address, the limit is MaxClientConns")
	errTotal      = errors.New("zkserver: too many connections, the limit is MaxConns")
	errByOption   = errors.New("zkserver: refused by the Accept option")

	errDescriptors = errors.New("zkserver: too many connections for the process's limit of open files; raise it (ulimit -n, or LimitNOFILE= of systemd)")
)
