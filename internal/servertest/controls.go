// Package servertest is how package zktest reaches into a server of package
// zkserver: for what no client can do, and no program but a test should.
package servertest

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
