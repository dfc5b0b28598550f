// Package home finds the directory of a user's local server. The directory is
// the server's identity: commands that find the same one exclude each other,
// and commands that do not, do not. So it depends on as little of the
// environment as possible, because cron, sudo and a login each have another.
package home

import (
	"errors"
	"fmt"
	"path/filepath"
)

// Advice ends every error of this package.
const Advice = "name servers with --servers or ZKLOCK_SERVERS, or a directory for a local server with ZKLOCK_HOME"

// ErrNone is wrapped by errors about a directory that cannot be had.
var ErrNone = errors.New("no directory for the local server")

// System is the directory of root's server.
const System = "/var/lib/zklock"

// Who is what the choice depends on.
type Who struct {
	Getenv func(string) string
	UID    int // the effective user
	// Passwd gives the home directory of the user in the password database,
	// "" if there is none. It is asked only where HOME is not set.
	Passwd func(uid int) string
}

// Dir chooses the directory: ZKLOCK_HOME; for root the system's; then the
// state directory of the XDG specification, by default ~/.local/state.
func Dir(w Who) (string, error) {
	if dir := w.Getenv("ZKLOCK_HOME"); dir != "" {
		if !filepath.IsAbs(dir) {
			return "", fmt.Errorf("%w: ZKLOCK_HOME is %q: give an absolute path", ErrNone, dir)
		}
		return filepath.Clean(dir), nil
	}
	if w.UID == 0 {
		return System, nil
	}
	// The specification says that a relative path is to be ignored.
	if dir := w.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "zklock"), nil
	}
	user := w.Getenv("HOME")
	if !filepath.IsAbs(user) && w.Passwd != nil {
		user = w.Passwd(w.UID)
	}
	if !filepath.IsAbs(user) {
		return "", fmt.Errorf("%w: user %d has no home directory; %s", ErrNone, w.UID, Advice)
	}
	return filepath.Join(user, ".local", "state", "zklock"), nil
}
