// Package local runs and finds the local server, which a command uses if no setting names
// servers. Each user has one local server. It listens on a unix socket. The first command
// that needs it starts it, and it ends some time after the last session.
//
// Its files are in one directory (see home.go). The serving process holds a flock on "lock".
// "socket" contains the path of the socket, "data" the znodes, and "log" the log.
package local

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/zklock/zklock/internal/inputfile"
)

// DefaultIdle is how long the server runs without a session.
const DefaultIdle = time.Minute

// ShutdownTime limits the shutdown of a local server, and of zklock serve, including the last
// snapshot. A hold with the default session timeout survives an outage of 10 s. So half
// of that is left for the start of the next server, and for the clients to reconnect.
const ShutdownTime = 5 * time.Second

// maxSocket is the maximum length of a socket's path on all systems: macOS allows 104 bytes
// with the final zero, Linux 108.
const maxSocket = 100

// The name of a socket, and the prefix of its directory's name if the socket is in a
// directory for temporary files. Random digits follow the prefix.
const (
	socketName = "sock"
	tempPrefix = "zklock-"
)

// temporary reports whether a path is a local server's socket in a directory for temporary
// files.
func temporary(socket string) bool {
	digits, ok := strings.CutPrefix(filepath.Base(filepath.Dir(socket)), tempPrefix)
	return ok && filepath.Base(socket) == socketName && digits != "" && strings.Trim(digits, "0123456789") == ""
}

// maxNote limits the size of the small files that this package reads.
const maxNote = 4096

// Errors of this package.
var (
	ErrUnavailable = errors.New("the local server cannot be used")
	ErrNotRunning  = errors.New("the local server is not running")
	errBusy        = errors.New("another process is serving, starting, or stopping")
)

// Place is the directory of one local server.
type Place struct{ Dir string }

// Own returns the place of this user's local server.
func Own() (Place, error) {
	dir, err := Dir(Mine())
	return Place{Dir: dir}, err
}

func (p Place) lockFile() string   { return filepath.Join(p.Dir, "lock") }
func (p Place) socketFile() string { return filepath.Join(p.Dir, "socket") }
func (p Place) logFile() string    { return filepath.Join(p.Dir, "log") }

// DataDir returns the data directory of the server.
func (p Place) DataDir() string { return filepath.Join(p.Dir, "data") }

// Socket returns the path of the socket that the server last bound, or "" if no server ever
// bound one.
func (p Place) Socket() string { return p.note(p.socketFile()) }

// Owns reports whether a connection string names the socket of this directory. A command
// under a lock gets its servers in this form, and must be able to start the server again as
// its parent can.
func (p Place) Owns(servers string) bool {
	socket := p.Socket()
	return socket != "" && servers == "unix:"+socket
}

// PID returns the process ID that the last server stored, or 0.
func (p Place) PID() int {
	pid, err := strconv.Atoi(p.note(p.lockFile()))
	if err != nil || pid < 2 {
		return 0
	}
	return pid
}

// note reads a small file of one line.
func (p Place) note(name string) string {
	text, _, err := inputfile.Read(name, maxNote)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSpace(line)
}

// wrap adds the directory of the log to an error of the server.
func (p Place) wrap(err error) error {
	return fmt.Errorf("%w (in %s, see its log): %w", ErrUnavailable, p.Dir, err)
}
