package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/cmd/zklock/internal/child"
	"github.com/zklock/zklock/cmd/zklock/internal/contexts"
	"github.com/zklock/zklock/cmd/zklock/internal/credentials"
	"github.com/zklock/zklock/cmd/zklock/internal/tlsconf"
	"github.com/zklock/zklock/internal/legible"
	"github.com/zklock/zklock/zk"
)

// Exit codes of zklock itself. Those from 124 on are those of timeout(1).
const (
	exitNo            = 1 // the answer is no: it does not hold, it was not taken away
	exitUsage         = 2
	exitLost          = 120 // the lock was lost, or about to be
	exitConflict      = 124 // not acquired; -E changes it
	exitFailed        = 125
	exitNotExecutable = 126
	exitNotFound      = 127
	exitSignal        = 128 // and the signal's number
)

// exitError is an error with its exit code. A nil Err says nothing to anybody:
// the code alone is the message.
type exitError struct {
	Code int
	Err  error
}

// Error is the error's text.
func (e *exitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit %d", e.Code)
	}
	return e.Err.Error()
}

// Unwrap returns the error without the code.
func (e *exitError) Unwrap() error { return e.Err }

// usage is an error about what was typed.
func usage(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

// code returns the exit code that err stands for.
func code(err error) int {
	var e *exitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &e):
		return e.Code
	case errors.Is(err, zklock.ErrInvalidName), errors.Is(err, zklock.ErrInvalidLock), errors.Is(err, zk.ErrInvalidServers),
		errors.Is(err, zklock.ErrInvalidOptions), errors.Is(err, zk.ErrInvalidOptions), errors.Is(err, tlsconf.ErrFiles), errors.Is(err, credentials.ErrCredentials), errors.Is(err, contexts.ErrFile):
		return exitUsage
	case errors.Is(err, child.ErrNotFound):
		return exitNotFound
	case errors.Is(err, child.ErrNotExecutable):
		return exitNotExecutable
	case errors.Is(err, zklock.ErrLost):
		return exitLost
	}
	return exitFailed
}

// report tells the user of an error, if there is anything to tell. What was to count as
// no failure (-E 0) is told to somebody who sits there, and not to cron, which makes a
// mail of every line.
func report(err error, terminal bool) {
	var e *exitError
	if errors.As(err, &e) && (e.Err == nil || e.Code == 0 && !terminal) {
		return
	}
	warn("%s%s", strings.TrimPrefix(err.Error(), "zklock: "), advice(err))
}

// warn writes one line for the user.
func warn(format string, args ...any) {
	_, _ = os.Stderr.WriteString(warning(format, args...))
}

// warning is a line for the user. What servers wrote may be in an error's text.
func warning(format string, args ...any) string {
	text := strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", "; ") // of several errors
	return "zklock: " + legible.Text(text) + "\n"
}
