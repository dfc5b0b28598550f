// Package local is the server that a command uses where no servers are named:
// this user's own, on a unix socket, started by whoever needs it and gone some
// time after the last session.
//
// All of it lives in one directory (package home): "lock" is held with flock
// by the process that serves, "socket" has the path of the socket, "data" the
// znodes, "log" what the server said.
package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// DefaultIdle is how long the server stays when it has no session.
const DefaultIdle = time.Minute

// maxSocket is the longest path that a socket can have everywhere: macOS
// has 104 bytes with the final zero, Linux 108.
const maxSocket = 100

// maxNote bounds the small files that this package reads.
const maxNote = 4096

// Errors of this package.
var (
	ErrUnavailable = errors.New("the local server cannot be used")
	ErrNotRunning  = errors.New("the local server is not running")
	errBusy        = errors.New("another process is serving, starting or stopping")
)

// Place is the directory of one local server.
type Place struct{ Dir string }

func (p Place) lockFile() string   { return filepath.Join(p.Dir, "lock") }
func (p Place) socketFile() string { return filepath.Join(p.Dir, "socket") }
func (p Place) logFile() string    { return filepath.Join(p.Dir, "log") }
func (p Place) dataDir() string    { return filepath.Join(p.Dir, "data") }

// Socket returns the path of the socket that the server last bound, "" if
// there never was one.
func (p Place) Socket() string { return p.note(p.socketFile()) }

// Owns reports whether a connection string means this place's socket. A
// command that was started under a lock is told it that way, and must be able
// to start the server again as its parent is.
func (p Place) Owns(servers string) bool {
	socket := p.Socket()
	return socket != "" && servers == "unix:"+socket
}

// PID returns the process id that the last server noted, 0 if none.
func (p Place) PID() int {
	pid, err := strconv.Atoi(p.note(p.lockFile()))
	if err != nil || pid < 2 {
		return 0
	}
	return pid
}

// note reads a small file of one line.
func (p Place) note(name string) string {
	f, err := os.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	buf := make([]byte, maxNote)
	n, _ := f.Read(buf) // an empty file is no note
	line, _, _ := strings.Cut(string(buf[:n]), "\n")
	return strings.TrimSpace(line)
}

// wrap makes an error of the server's own tell where to look.
func (p Place) wrap(err error) error {
	return fmt.Errorf("%w (in %s, see its log): %w", ErrUnavailable, p.Dir, err)
}
