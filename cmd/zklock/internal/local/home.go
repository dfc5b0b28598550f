package local

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/zklock/zklock/internal/ownership"
)

// This file finds the directory of a user's local server. The directory is the server's
// identity: two commands exclude each other only if they find the same directory. So the
// choice depends on few variables, because cron, sudo, and a login have different
// environments.

// Advice ends the errors of this package that another directory, or other servers, would avoid.
const Advice = "name servers with --servers or ZKLOCK_SERVERS, or a directory for a local server with ZKLOCK_HOME"

// noDirectory begins errors about the directory of the local server.
const noDirectory = "no directory for the local server"

// DirError says why a directory cannot be the one of a local server.
type DirError struct {
	Reason error
	Remedy string // what makes this directory usable; "" if nothing does
}

// Error returns the reason and what to do.
func (e *DirError) Error() string {
	if e.Remedy != "" {
		return fmt.Sprintf("%s: %v; %s, or %s", noDirectory, e.Reason, e.Remedy, Advice)
	}
	return fmt.Sprintf("%s: %v; %s", noDirectory, e.Reason, Advice)
}

// Unwrap returns the reason.
func (e *DirError) Unwrap() error { return e.Reason }

// System is the directory of the local server of root.
const System = "/var/lib/zklock"

// Who is what the choice depends on.
type Who struct {
	Getenv func(string) string
	UID    int // the effective user
	// Passwd returns the home directory of the user in the password database, or "". Dir
	// calls it only if HOME is not set.
	Passwd func(uid int) string
}

// Home returns the directory of the local server that owns dir, or "" if none does. It is
// the local server of w, even if it never ran, or one that left its files there.
func Home(dir string, w Who) string {
	dir = resolved(dir)
	own, err := Dir(w)
	switch parent := filepath.Dir(dir); {
	case dir == "":
		return ""
	case err == nil && (dir == resolved(own) || dir == Place{Dir: resolved(own)}.DataDir()):
		return own
	case Place{Dir: dir}.used():
		return dir
	case dir == (Place{Dir: parent}).DataDir() && (Place{Dir: parent}).used():
		return parent
	}
	return ""
}

// used reports whether a local server of this user or root left its files there. In a directory
// such as /tmp, any user can create a file with the name of one, or a link to one.
func (p Place) used() bool {
	info, err := os.Lstat(p.socketFile())
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	_, other := ownership.Other(info)
	socket := p.Socket()
	return !other && filepath.IsAbs(socket) && filepath.Base(socket) == socketName
}

// resolved returns an absolute path without symbolic links, as far as it exists.
func resolved(dir string) string {
	full, err := filepath.Abs(dir)
	if dir == "" || err != nil {
		return ""
	}
	if real, err := filepath.EvalSymlinks(full); err == nil {
		return real
	}
	if parent := filepath.Dir(full); parent != full {
		return filepath.Join(resolved(parent), filepath.Base(full))
	}
	return full
}

// Dir returns the directory: ZKLOCK_HOME, otherwise System for root, otherwise zklock in the
// state directory of the XDG specification, which is ~/.local/state by default.
func Dir(w Who) (string, error) {
	if dir := w.Getenv("ZKLOCK_HOME"); dir != "" {
		if !filepath.IsAbs(dir) {
			return "", fmt.Errorf("%s: ZKLOCK_HOME is %q: give an absolute path", noDirectory, dir)
		}
		return filepath.Clean(dir), nil
	}
	if w.UID == 0 {
		return System, nil
	}
	// The specification requires relative paths to be ignored.
	if dir := w.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "zklock"), nil
	}
	user := w.Getenv("HOME")
	if !filepath.IsAbs(user) && w.Passwd != nil {
		user = w.Passwd(w.UID)
	}
	if !filepath.IsAbs(user) {
		return "", &DirError{Reason: fmt.Errorf("user %d has no home directory", w.UID)}
	}
	return filepath.Join(user, ".local", "state", "zklock"), nil
}
