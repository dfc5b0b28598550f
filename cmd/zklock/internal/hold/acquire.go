package hold

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/cmd/zklock/internal/cli"
	"github.com/zklock/zklock/inspect"
	"github.com/zklock/zklock/internal/legible"
	"github.com/zklock/zklock/zk"
)

// severalTimeout limits the wait for several locks if --timeout does not. A client that
// acquires the same locks one by one can deadlock with this one.
const severalTimeout = time.Minute

// errUnanswered: the servers did not answer when the wait ended.
var errUnanswered = errors.New("no answer from the servers")

// acquire acquires the locks and shows the progress of the wait on line. Its error has the
// exit code. The timeout counts from began, so it includes the time until the first server
// answered.
func acquire(ctx context.Context, s *cli.Settings, c *zklock.Client, spec *lockSpec, line *waitLine, began time.Time) (*zklock.Hold, error) {
	l := newLock(c, spec)
	wait, cancel := ctx, context.CancelFunc(func() {})
	timeout := acquireTimeout(s, spec)
	if timeout > 0 {
		wait, cancel = context.WithDeadline(ctx, began.Add(timeout))
	}
	defer cancel()
	stop := line.start(wait, c, l, spec.title())
	hold, err := acquireOrTry(wait, s, l)
	stop()
	switch {
	case err == nil:
		if err := checkKind(ctx, c, spec); err != nil {
			return nil, err // the caller closes the client, which releases the lock
		}
		return hold, nil
	case ctx.Err() != nil:
		return nil, cli.Interrupted(ctx, err)
	case errors.Is(err, zklock.ErrLocked):
		return nil, &cli.ExitError{Code: s.Conflict, Err: explainNodeLock(ctx, s, l, spec, lockedError(spec, err, s.ServersSuffix()))}
	case wait.Err() != nil && unanswered(c.Health()):
		// The lock may be free: a cron job must not take this for a lock that is held.
		failed := fmt.Errorf("%s was not acquired within %s: %w%s", spec.title(), cli.ExactDuration(timeout), errUnanswered, s.ServersSuffix())
		if reason := c.Health().Err; reason != nil {
			failed = fmt.Errorf("%w: %w", failed, reason)
		}
		return nil, &cli.ExitError{Code: cli.ExitFailed, Err: failed}
	case wait.Err() != nil:
		return nil, &cli.ExitError{Code: s.Conflict, Err: explainNodeLock(ctx, s, l, spec, timeoutError(spec, timeout, s.ServersSuffix()))}
	}
	return nil, explain(s, spec, err)
}

// unanswered reports whether the servers do not answer the client.
func unanswered(h zklock.Health) bool {
	return h.State != zk.Connected || inspect.InJeopardy(h.Heartbeat, h.Timeout)
}

// newLock returns all locks of spec as one lock.
func newLock(c *zklock.Client, spec *lockSpec) *zklock.Lock {
	locks := make([]*zklock.Lock, len(spec.paths))
	for i, path := range spec.paths {
		locks[i] = newLockAt(c, spec, path)
	}
	switch {
	case len(locks) == 1 && spec.value != "":
		return locks[0].WithValue(spec.value)
	case len(locks) == 1:
		return locks[0]
	}
	all := zklock.All(locks...)
	if spec.inOrder {
		all = all.InOrder()
	}
	return all
}

// newLockAt returns the lock at one path.
func newLockAt(c *zklock.Client, spec *lockSpec, path string) *zklock.Lock {
	switch {
	case spec.count > 0:
		return c.Semaphore(path, spec.count).Permits(spec.permits)
	case spec.resizable:
		return c.ResizableSemaphore(path).Permits(spec.permits)
	case spec.node:
		return c.NodeLock(path)
	case spec.shared:
		return c.RWMutex(path).Reader()
	case spec.write:
		return c.RWMutex(path).Writer()
	}
	return c.Mutex(path)
}

// acquireTimeout returns the time limit of the acquire, 0 for none. Several locks always
// have a limit.
func acquireTimeout(s *cli.Settings, spec *lockSpec) time.Duration {
	if s.Wait.D == 0 && len(spec.paths) > 1 {
		return severalTimeout
	}
	return s.Wait.D
}

// acquireOrTry acquires the lock, without waiting if --try is given.
func acquireOrTry(ctx context.Context, s *cli.Settings, l *zklock.Lock) (*zklock.Hold, error) {
	if !s.Try {
		return l.Acquire(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, s.Connect.D)
	defer cancel()
	return l.TryAcquire(ctx)
}

// lockedError returns the error of a command that does not wait. err is the error of the
// library, which names the holder if it is known. servers is a suffix that names the
// servers.
func lockedError(spec *lockSpec, err error, servers string) error {
	if len(spec.paths) > 1 {
		return fmt.Errorf("%s are not all free%s", spec.title(), servers)
	}
	why := "held by another client"
	if failed := (*zklock.Error)(nil); errors.As(err, &failed) && failed.Err != zklock.ErrLocked {
		why = strings.TrimPrefix(failed.Err.Error(), "zklock: ")
	}
	return fmt.Errorf("%s is %s%s", spec.title(), why, servers)
}

// timeoutError returns the error of an acquire that timed out. servers is a suffix that
// names the servers.
func timeoutError(spec *lockSpec, timeout time.Duration, servers string) error {
	if len(spec.paths) == 1 {
		return fmt.Errorf("%s was not acquired within %s%s", spec.title(), cli.ExactDuration(timeout), servers)
	}
	text := fmt.Sprintf("%s were not acquired within %s%s; --timeout sets another limit", spec.title(), cli.ExactDuration(timeout), servers)
	if !spec.inOrder {
		text += "; if other clients acquire these locks one by one, this can be a deadlock: see --in-order"
	}
	return errors.New(text)
}

// explainNodeLock returns err. If a node lock is blocked by a znode that belongs to no
// session, it returns an error that says so, because no client will delete that znode.
func explainNodeLock(ctx context.Context, s *cli.Settings, l *zklock.Lock, spec *lockSpec, err error) error {
	if !spec.node {
		return err
	}
	ctx, cancel := s.ConnectContext(ctx)
	defer cancel()
	if entries, failed := l.Inspect(ctx); failed == nil && len(entries) == 1 && blocksNodeLock(entries[0]) {
		return fmt.Errorf("%s: the znode %s belongs to no session, so no client deletes it (it can be the parent of another kind of lock); delete it, or give the lock another name",
			spec.title(), spec.paths[0])
	}
	return err
}

// explain adds to an error of the library what the user of the command can do.
func explain(s *cli.Settings, spec *lockSpec, err error) error {
	failed := func(format string, args ...any) error {
		return &cli.ExitError{Code: cli.ExitFailed, Err: fmt.Errorf("%s: "+format, append([]any{spec.title()}, args...)...)}
	}
	switch {
	case errors.Is(err, zk.ErrNoNode) && s.Chroot() != "":
		return failed("%w", s.MissingChroot())
	case errors.Is(err, zklock.ErrForeignMutex):
		return failed("a mutex of another library on this path does not wait for readers; use that library's read-write lock, or give --allow-foreign-mutex")
	case errors.Is(err, zklock.ErrWriteLock):
		return failed("ZooKeeper's WriteLock has entries on this path and would not wait for this one; omit --write, and give --layout curator or writelock")
	case errors.Is(err, zk.ErrNoChildrenForEphemerals):
		return failed("a znode on its path is ephemeral, so it is a node lock (--node) or belongs to another program; give the lock another name")
	case errors.Is(err, zk.ErrInvalidACL):
		return failed("%s", spec.acl.Rejection())
	case errors.Is(err, zklock.ErrPermits):
		return failed("other clients use this semaphore with another number of permits; give the --count that zklock show %s prints, or --resizable", legible.Word(spec.names[0]))
	case errors.Is(err, zklock.ErrSize) && len(spec.names) > 1:
		return failed("the size of one of these semaphores is not set, or less than --permits; zklock show LOCK prints the size, and zklock resize LOCK N sets it")
	case errors.Is(err, zklock.ErrSize):
		return failed("the size of the semaphore is not set, or less than --permits; zklock resize %s N sets it", legible.Word(spec.names[0]))
	}
	return err
}

// releaseError returns the error of a release that failed, and says when the lock is free
// nevertheless: timeout is the session timeout that the servers granted.
func releaseError(s *cli.Settings, spec *lockSpec, timeout time.Duration, err error) error {
	free := "; the lock is free when its session expires, which takes at most " + cli.ExactDuration(timeout) + " while the servers are up"
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("release %s: no answer from the servers%s%s", spec.title(), s.ServersSuffix(), free)
	}
	return fmt.Errorf("%s%s", strings.TrimPrefix(err.Error(), "zklock: "), free)
}

// releaseTimeout returns the time limit of a release. Once the session timeout has
// passed, the lock is free even without a release.
func releaseTimeout(s *cli.Settings) time.Duration { return min(s.Session.D, 5*time.Second) }
