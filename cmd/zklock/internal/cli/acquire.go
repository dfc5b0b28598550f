package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/cmd/zklock/internal/front"
	"github.com/zklock/zklock/zk"
)

// owner is what others see of this process and the command it runs. The
// command's arguments stay here: they may hold secrets.
func owner(command string) zklock.Owner {
	o := zklock.Owner{PID: os.Getpid(), Command: filepath.Base(command), Version: "zklock " + zklock.Version}
	// What an outer zklock run has said changes nothing but what others see.
	if outer := os.Getenv("ZKLOCK_SESSION"); isSession(outer) {
		o.Within = outer
	}
	o.Host, _ = os.Hostname() // an unknown name is left out
	if u, err := user.Current(); err == nil {
		o.User = u.Username
	}
	return o
}

// isSession reports whether a text is a session's id.
func isSession(text string) bool {
	_, err := strconv.ParseUint(text, 0, 64)
	return err == nil && len(text) <= len("0x0123456789abcdef")
}

// outlivePipes lets this process write to a pipe that nobody reads and get an
// error. By default the first warning after that would end it, and with it the
// hold and the command. To ignore the signal would be handed on to the command,
// to handle it is not.
func outlivePipes() {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // never read: what does not fit is dropped
}

// errInterrupted is the cause of a context that a signal ended.
type errInterrupted struct{ sig os.Signal }

// Error names the signal.
func (e errInterrupted) Error() string { return "interrupted by " + e.sig.String() }

// status is the exit code for having been interrupted.
func (e errInterrupted) status() int {
	if n, ok := e.sig.(syscall.Signal); ok {
		return exitSignal + int(n)
	}
	return exitFailed
}

// interruptible returns a context that the first signal of the kind that ends
// programs ends, or the end of the process that the shell started, if there is
// one beside this. Signals that follow later stay in the channel. The goroutine
// ends when stop is called, which must be before anybody else reads signals.
func interruptible(signals <-chan os.Signal, link *front.Link) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			case <-link.Gone():
				cancel(errInterrupted{syscall.SIGHUP}) // nobody is left to wait for us
				return
			case sig := <-signals:
				if ends(sig) {
					cancel(errInterrupted{sig})
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

// ends reports whether a signal means to give up.
func ends(sig os.Signal) bool {
	switch sig {
	case os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT:
		return true
	}
	return false
}

// acquire takes the locks as the flags say, telling of the wait, or returns an
// error with its exit code. The time to wait counts from began: who said -w 10
// does not ask what of it went by until a server answered.
func (s *settings) acquire(ctx context.Context, c *zklock.Client, k *claim, line *waitLine, began time.Time) (*zklock.Hold, error) {
	l := k.lock(c)
	wait, cancel := ctx, context.CancelFunc(func() {})
	limit := k.limit(s)
	if limit > 0 {
		wait, cancel = context.WithDeadline(ctx, began.Add(limit))
	}
	defer cancel()
	stop := line.start(wait, l, k.title())
	hold, err := s.take(wait, l)
	stop()
	switch {
	case err == nil:
		return hold, nil
	case ctx.Err() != nil:
		return nil, interrupted(ctx, err)
	case errors.Is(err, zklock.ErrLocked):
		return nil, &exitError{s.conflict, s.squatted(ctx, l, k, k.taken(s.on()))}
	case wait.Err() != nil:
		return nil, &exitError{s.conflict, s.squatted(ctx, l, k, k.late(limit, s.on()))}
	}
	return nil, advise(k, err)
}

// squatted is why a lock that is one znode was not had: err, unless the znode there
// is nobody's, whom nobody would wait for if they knew.
func (s *settings) squatted(ctx context.Context, l *zklock.Lock, k *claim, err error) error {
	if !k.node {
		return err
	}
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	if entries, failed := l.Inspect(ctx); failed == nil && len(entries) == 1 && nobodys(entries[0]) {
		return fmt.Errorf("%s: the znode %s belongs to no session, as the parent of another kind of lock's does, and goes with none; delete it, or give the lock another name", k.title(), k.paths[0])
	}
	return err
}

// nobodys reports whether a znode at a node lock's path belongs to no session.
func nobodys(e zklock.Entry) bool { return e.Node == e.Path && e.Mode == zklock.Stray }

// advise says in the command's own terms what to do about an error that depends
// on who else uses the lock.
func advise(k *claim, err error) error {
	switch {
	case errors.Is(err, zklock.ErrForeignMutex):
		return &exitError{exitFailed, fmt.Errorf("%s: a mutex of another library on this path does not see readers; let it use its read-write lock, or give --beside-foreign", k.title())}
	case errors.Is(err, zklock.ErrWriteLock):
		return &exitError{exitFailed, fmt.Errorf("%s: ZooKeeper's WriteLock has entries on this path, and would not wait for this one; leave --write out, and give --layout curator or writelock", k.title())}
	case errors.Is(err, zk.ErrNoChildrenForEphemerals):
		return &exitError{exitFailed, fmt.Errorf("%s: a znode on its path is ephemeral, and so a lock of one znode (--node) or another program's; give the lock another name", k.title())}
	case errors.Is(err, zk.ErrInvalidACL) && k.acl.text == "":
		return &exitError{exitFailed, fmt.Errorf("%s: its znode may not be read, and the servers do not know the credentials that were given; see --auth-file and ZKLOCK_AUTH", k.title())}
	case errors.Is(err, zk.ErrInvalidACL):
		return &exitError{exitFailed, fmt.Errorf("%s: the servers refuse --acl %s: an ACL of the creator, or of auth, needs credentials; see --auth-file and ZKLOCK_AUTH", k.title(), k.acl.text)}
	case errors.Is(err, zklock.ErrPermits):
		return &exitError{exitFailed, fmt.Errorf("%s: others use this semaphore with another number of permits; give the --count that zklock show %s says", k.title(), k.names[0])}
	}
	return err
}

// take acquires with or without waiting.
func (s *settings) take(ctx context.Context, l *zklock.Lock) (*zklock.Hold, error) {
	if !s.try {
		return l.Acquire(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, s.connect.D)
	defer cancel()
	return l.TryAcquire(ctx)
}

// interrupted is the error for a context that a signal ended; err is what came
// of it otherwise.
func interrupted(ctx context.Context, err error) error {
	var sig errInterrupted
	if errors.As(context.Cause(ctx), &sig) {
		return &exitError{Code: sig.status()}
	}
	return err
}

// releaseTime bounds a release: after a session's timeout the lock is free
// whatever becomes of it.
func (s *settings) releaseTime() time.Duration { return min(s.session.D, 5*time.Second) }
