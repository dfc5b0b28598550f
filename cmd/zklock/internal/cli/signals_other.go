//go:build !unix

package cli

// ignoreBrokenPipes does nothing: this system has no signal for broken pipes.
func ignoreBrokenPipes() {}
