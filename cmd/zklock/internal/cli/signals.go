package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/zklock/zklock/cmd/zklock/internal/process"
)

// interruptedError is the cause of a context that a signal canceled.
type interruptedError struct{ sig os.Signal }

// Error names the signal.
func (e interruptedError) Error() string { return "interrupted by " + e.sig.String() }

// SignalExit returns the exit code of a command that a signal ended.
func SignalExit(sig os.Signal) int { return 128 + int(sig.(syscall.Signal)) }

// Interruptible returns a context that the first termination signal cancels. If there is a
// front process, its end cancels the context too. Later signals stay in the channel. The
// goroutine ends when stop is called. The caller must call stop before it reads signals.
func Interruptible(signals <-chan os.Signal, link *process.Link) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			case <-link.Gone():
				cancel(interruptedError{syscall.SIGHUP}) // no process waits for this one any more
				return
			case sig := <-signals:
				if IsTermination(sig) {
					cancel(interruptedError{sig})
					return
				}
			}
		}
	}()
	return ctx, func() {
		close(done)
		<-ended
		cancel(nil)
	}
}

// IsTermination reports whether a signal asks the process to end.
func IsTermination(sig os.Signal) bool {
	switch sig {
	case os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT:
		return true
	}
	return false
}

// Interrupted returns the error for a context that a signal canceled, and err for any other
// context.
func Interrupted(ctx context.Context, err error) error {
	if cause, ok := errors.AsType[interruptedError](context.Cause(ctx)); ok {
		return &ExitError{Code: SignalExit(cause.sig), Interrupted: cause.sig == os.Interrupt}
	}
	return err
}

// UntilInterrupted runs f and returns its error. If ctx ends first, it waits for f only for a
// moment: f may write to standard output that is not read, as on a terminal after Ctrl-S.
func UntilInterrupted(ctx context.Context, f func() error) error {
	ended := make(chan error, 1)
	go func() { ended <- f() }() // ends with f, or with the program if f is blocked
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-ended:
		return err
	case <-time.After(lastTime):
		return ctx.Err()
	}
}

// TerminationSignals returns a channel with the signals that end a server. SIGHUP ends it
// unless it is ignored, for example by nohup. From then on a closed pipe on standard output
// or standard error does not end the process.
func TerminationSignals() chan os.Signal {
	signals := make(chan os.Signal, 2)
	ignored := signal.Ignored(syscall.SIGHUP)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !ignored {
		signal.Notify(signals, syscall.SIGHUP)
	}
	signal.Ignore(syscall.SIGPIPE) // by default, a write to a closed pipe ends a Go program
	return signals
}
