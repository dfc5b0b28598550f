// Package servertest lets package zktest start a server of package zkserver with a file system in
// memory, and with controls that other programs do not have.
package servertest

import "github.com/zklock/zklock/internal/wal"

// Setup has internal options of a server.
type Setup struct {
	FS       wal.FS    // the file system of the data directory; nil is the operating system's
	Controls *Controls // filled in by zkserver.New, unless nil
}

// Apply stores a setup in options, a *zkserver.Options. Package zkserver sets this variable.
var Apply func(options any, setup Setup)

// Controls has functions that zkserver.New sets. They may be called from any goroutine until the
// server has ended.
type Controls struct {
	// Pause stops the server between two batches, as SIGSTOP would: requests wait, and no
	// session expires. The returned function lets the server continue. The server then reads
	// requests for a moment before it expires sessions. A second call waits until the first
	// pause ends.
	Pause func() (resume func())
	// JumpSequence durably sets the number of the next sequential child of the node at path. It
	// fails if the node does not exist, or has already used this number or a higher one.
	JumpSequence func(path string, next int32) error
}
