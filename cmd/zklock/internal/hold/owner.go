package hold

import (
	"os"
	"path/filepath"
	"strconv"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/cmd/zklock/internal/cli"
	"github.com/zklock/zklock/cmd/zklock/internal/process"
)

// owner returns what other clients see of this process and its command. It leaves out the
// command's arguments, which may contain secrets.
func owner(command string) zklock.Owner {
	o := cli.ProcessOwner()
	o.Command, o.Version = filepath.Base(command), "zklock "+zklock.Version
	if outer := os.Getenv(process.EnvSession); isSession(outer) { // set by an outer zklock run
		o.ParentSession = outer
	}
	return o
}

// isSession reports whether a text is the id of a session.
func isSession(text string) bool {
	_, err := strconv.ParseUint(text, 0, 64)
	return err == nil && len(text) <= len("0x0123456789abcdef")
}
