package bench

import (
	"context"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
)

// ours is a contender for one of this module's locks, by way of a client of its
// own on the session. It uses the public API alone, as programs do: what it costs
// is what they pay.
type ours struct {
	client *zklock.Client
	path   string
	pick   func(c *zklock.Client, path string, write bool) *zklock.Lock
	placed chan struct{} // has room for one word that the entry has its place

	hold   *zklock.Hold
	cancel context.CancelFunc // ends the acquire, nil before the first
	ended  chan struct{}      // closed when the acquire has ended
}

// joinOurs returns how to make contenders for the lock that pick picks. The hook
// must not block, and one word is enough: a contender has one acquire at a time.
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

// mutex is the lock of zklock-mutex.
func mutex(c *zklock.Client, path string, _ bool) *zklock.Lock { return c.Mutex(path) }

// readWrite is the lock of zklock-rwmutex, the side that is asked for.
func readWrite(c *zklock.Client, path string, write bool) *zklock.Lock {
	if write {
		return c.RWMutex(path).Writer()
	}
	return c.RWMutex(path).Reader()
}

// enter begins an acquire, and returns when it has its place in the queue.
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

// wait has nothing to do: Acquire waits from the start.
func (o *ours) wait() {}

// leave releases the hold, and waits for the servers' word as the others do.
func (o *ours) leave(ctx context.Context) error {
	defer o.cancel()
	return o.hold.Release(ctx)
}

// event has nothing to do: the client listens for itself.
func (o *ours) event(zk.Event) {}

// stop gives up an acquire that is still waiting.
func (o *ours) stop() {
	if o.cancel != nil {
		o.cancel()
		<-o.ended
	}
}

// close ends the client. Its entries have ended with the session, whatever it
// says of them.
func (o *ours) close() { _ = o.client.Close() }
