package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/cmd/zklock/internal/config"
	"github.com/zklock/zklock/cmd/zklock/internal/process"
	"github.com/zklock/zklock/internal/legible"
	"github.com/zklock/zklock/zk"
)

// Exit codes of zklock itself. Those from 124 on are those of timeout(1).
const (
	ExitNo            = 1 // the answer is no: the token does not hold, the lock was not broken
	ExitUsage         = 2
	ExitLost          = 120 // the lock was lost, or would have been lost
	ExitMaxHold       = 123 // --max-hold ended the command
	ExitConflict      = 124 // not acquired; -E changes this code
	ExitFailed        = 125
	ExitNotExecutable = 126
	exitNotFound      = 127
)

// ExitError is an error with an exit code. If Err is nil, the command prints no message.
type ExitError struct {
	Code        int
	Err         error
	Interrupted bool // because of INT; on a terminal, INT then ends the process
}

// ExitLike returns the error for an exit in the same way as another process.
func ExitLike(exit process.Exit) *ExitError {
	return &ExitError{Code: exit.Status(), Interrupted: exit.Signal == int(syscall.SIGINT)}
}

// Error returns the text of the error.
func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit %d", e.Code)
	}
	return e.Err.Error()
}

// Unwrap returns the error without the code.
func (e *ExitError) Unwrap() error { return e.Err }

// UsageError returns an error about the command line.
func UsageError(format string, args ...any) error {
	return &ExitError{Code: ExitUsage, Err: fmt.Errorf(format, args...)}
}

// ExitCode returns the exit code for err.
func ExitCode(err error) int {
	var e *ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &e):
		return e.Code
	case errors.Is(err, zklock.ErrInvalidName), errors.Is(err, zklock.ErrInvalidLock), errors.Is(err, zk.ErrInvalidServers),
		errors.Is(err, zklock.ErrInvalidOptions), errors.Is(err, zk.ErrInvalidOptions), errors.Is(err, config.ErrTLSFiles), errors.Is(err, config.ErrCredentials), errors.Is(err, config.ErrContexts):
		return ExitUsage
	case errors.Is(err, process.ErrNotFound):
		return exitNotFound
	case errors.Is(err, process.ErrNotExecutable):
		return ExitNotExecutable
	case errors.Is(err, zklock.ErrLost):
		return ExitLost
	case outputClosed(err):
		return SignalExit(syscall.SIGPIPE)
	}
	return ExitFailed
}

// outputError returns the error of a write to standard output, or nil if err is another error.
func outputError(err error) error {
	if write, ok := errors.AsType[*fs.PathError](err); ok && write.Path == os.Stdout.Name() {
		return write
	}
	return nil
}

// outputClosed reports whether err is a write to standard output whose reader has ended, as
// head does. A connection whose peer has ended is another error.
func outputClosed(err error) bool { return errors.Is(outputError(err), syscall.EPIPE) }

// report prints an error for the user. If the exit code is 0 (-E 0), it prints the error
// only on a terminal, because cron sends a mail for each line.
func report(err error, terminal bool) {
	var e *ExitError
	if errors.As(err, &e) && (e.Err == nil || e.Code == 0 && !terminal) || outputClosed(err) {
		return
	}
	_, _ = io.WriteString(lineWriter{lastTime}, Warning("%s%s", strings.TrimPrefix(err.Error(), "zklock: "), advice(err))) // it never fails
}

// Warn writes one line for the user, to [Stderr].
func Warn(format string, args ...any) {
	_, _ = io.WriteString(Stderr, Warning(format, args...)) // it never fails
}

// maxWarning limits a line for the user, in bytes. Errors quote values of any length, such as
// those of environment variables.
const maxWarning = 8 << 10

// Warning returns a line for the user. It escapes the text, because errors can quote data
// from servers.
func Warning(format string, args ...any) string {
	text := strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", "; ") // joined errors
	if text = legible.Text(text); len(text) > maxWarning {
		text = strings.ToValidUTF8(text[:maxWarning], "") + "..."
	}
	return "zklock: " + text + "\n"
}
