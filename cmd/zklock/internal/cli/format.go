package cli

import (
	"fmt"
	"os"
	"os/user"
	"runtime"

	"golang.org/x/term"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/inspect"
)

// EraseLine is the terminal sequence that clears the current line.
const EraseLine = "\r\x1b[K"

// ObeysSequences reports whether a file descriptor is a terminal on which sequences move the
// cursor and set colors. TERM says which do not. Windows does not set TERM.
func ObeysSequences(fd int) bool {
	kind := os.Getenv("TERM")
	return term.IsTerminal(fd) && kind != "dumb" && (kind != "" || runtime.GOOS == "windows")
}

// DescribeOwner names the client that created an entry, and its command if it is known.
func DescribeOwner(e zklock.Entry) string {
	if e.Owner.Command == "" {
		return inspect.OwnerName(e)
	}
	return inspect.OwnerName(e) + " (" + OwnerCommand(e) + ")"
}

// ProcessOwner returns the host, the process, and the user of this process.
func ProcessOwner() zklock.Owner {
	o := zklock.Owner{PID: os.Getpid()}
	o.Host, _ = os.Hostname() // empty if unknown
	if u, err := user.Current(); err == nil {
		o.User = u.Username
	}
	return o
}

// ByOwner returns a suffix with the client that ran a job, or "" if it is not known.
func ByOwner(o zklock.Owner) string {
	if who := o.String(); who != "" {
		return " by " + who
	}
	return ""
}

// DescribeRequest returns a suffix with the client that requested a release and its reason,
// as far as the request says.
func DescribeRequest(r zklock.ReleaseRequest) string {
	text := ""
	if by := inspect.RequesterName(r); by != "" {
		text = " by " + by
	}
	if reason := inspect.RequestReason(r); reason != "" {
		text += " (" + reason + ")"
	}
	return text
}

// OwnerUser returns the user of the client that created an entry, or a dash.
func OwnerUser(e zklock.Entry) string {
	return OrDash(inspect.Truncate(e.Owner.User, inspect.MaxOwnerName))
}

// OwnerCommand returns the command of the client that created an entry, or a dash.
func OwnerCommand(e zklock.Entry) string {
	return OrDash(inspect.Truncate(e.Owner.Command, inspect.MaxOwnerName))
}

// Count returns a number with its noun.
func Count(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

// OrDash returns s, or a dash if s is empty.
func OrDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
