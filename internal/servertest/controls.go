// Package servertest lets package zktest give a server of package zkserver what no other
// program can give it: a file system in memory, and controls that no client has.
package servertest

import "github.com/zklock/zklock/internal/wal"

// Setup is what a server gets besides its public options.
type Setup struct {
	FS       wal.FS    // the file system of the data directory; nil is the operating system's
	Controls *Controls // filled in by zkserver.New, unless nil
}

// Apply stores a setup in options, a *zkserver.Options. Package zkserver sets this variable.
var Apply func(options any, setup Setup)

// Controls are filled in by zkserver.New for whoever gave them in its options.
// The functions may be called from any goroutine until the server has ended.
type Controls struct {
	// Pause holds the server up between two batches, as SIGSTOP would: what
	// arrives waits, and nobody is expired. The function that it returns lets
	// it go on, after which clients get a moment to be heard before they are
	// expired. Pausing twice waits for the first pause's end.
	Pause func() (resume func())
	// JumpSequence makes next the number of the next sequential child of the
	// node at path, durably. It fails if there is no such node, or if that
	// number or a higher one was given there already.
	JumpSequence func(path string, next int32) error
}
