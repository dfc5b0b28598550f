package bench

import (
	"context"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
)

// ours is a contender for one of zklock's locks, with its own zklock.Client on the session.
// It uses only the public API, so its cost is that of a program.
type ours struct {
	client *zklock.Client
	path   string
	pick   func(c *zklock.Client, path string, write bool) *zklock.Lock
	placed chan struct{} // receives a value when the entry is in the queue; has room for one

	hold   *zklock.Hold
	cancel context.CancelFunc // ends the acquire; nil before the first
	ended  chan struct{}      // closed when the acquire has ended
}

// joinOurs returns a function that makes contenders for the lock that pick returns. The
// hook must not block, and room for one value is enough, because a contender has one
// acquire at a time.
func joinOurs(pick func(*zklock.Client, string, bool) *zklock.Lock) func(*zk.Client, string) contender {
	return func(c *zk.Client, path string) contender {
		o := &ours{path: path, pick: pick, placed: make(chan struct{}, 1)}
		o.client = zklock.New(c, &zklock.Options{OnWait: func(zklock.Event) {
			select {
			case o.placed <- struct{}{}:
			default:
			}
		}})
		return o
	}
}

// mutex returns the lock of zklock-mutex.
func mutex(c *zklock.Client, path string, _ bool) *zklock.Lock { return c.Mutex(path) }

// readWrite returns the lock of zklock-rwmutex for writing or reading.
func readWrite(c *zklock.Client, path string, write bool) *zklock.Lock {
	if write {
		return c.RWMutex(path).Writer()
	}
	return c.RWMutex(path).Reader()
}

// enter starts an acquire, and returns when it is in the queue.
func (o *ours) enter(ctx context.Context, write bool, granted func(error)) error {
	select {
	case <-o.placed: // of an earlier acquire
	default:
	}
	acquiring, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	o.cancel, o.ended = cancel, ended
	// This goroutine ends with the acquire: when it is granted, or by stop.
	go func() {
		defer close(ended)
		hold, err := o.pick(o.client, o.path, write).Acquire(acquiring)
		o.hold = hold
		granted(err)
	}()
	select {
	case <-o.placed:
	case <-ended:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// wait does nothing, because Acquire waits from the start.
func (o *ours) wait() {}

// leave releases the hold, and waits for the servers' answer like the other recipes.
func (o *ours) leave(ctx context.Context) error {
	defer o.cancel()
	return o.hold.Release(ctx)
}

// event does nothing, because the client handles its own events.
func (o *ours) event(zk.Event) {}

// stop cancels an acquire that still waits.
func (o *ours) stop() {
	if o.cancel != nil {
		o.cancel()
		<-o.ended
	}
}

// close closes the client. Its entries have ended with the session, whatever Close returns.
func (o *ours) close() { _ = o.client.Close() }
