package zklock

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/zklock/zklock/internal/queue"
	"github.com/zklock/zklock/zk"
)

// A tickLearner finds out the tick of the servers behind each connection: a client
// that knows it proves later deadlines.
type tickLearner struct {
	client *Client
	began  time.Time
	active sync.WaitGroup // attempts that have not ended

	mu     sync.Mutex
	timer  *time.Timer        // begins the attempt for the present connection
	cancel context.CancelFunc // ends that attempt; nil if there is none
	closed bool
}

// connected plans an attempt for a new connection. Some servers can be asked only by
// a session of its own, so it begins when the client has lived for a session timeout:
// clients that last ask, and short commands do not.
func (t *tickLearner) connected(s zk.StateChange) {
	if t.client.opts.ServerTick > 0 {
		return // the core knows it
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stop()
	if t.closed {
		return
	}
	// The clients of a server that restarts do not all ask it at the same moment.
	wait := max(s.Timeout-time.Since(t.began), time.Duration(rand.Int64N(int64(s.Timeout/16)+1)))
	ctx, cancel := context.WithCancel(context.Background())
	t.cancel = cancel
	t.active.Add(1)
	t.timer = time.AfterFunc(wait, func() { // ends within a quarter of the timeout, or soon after stop
		defer t.active.Done()
		ctx, cancel := context.WithTimeout(ctx, s.Timeout/4)
		defer cancel()
		tick, err := t.client.zk.ServerTick(ctx)
		if err != nil {
			t.client.log.Debug("the servers' tick is unknown", "error", err)
			return
		}
		t.client.step(func(core *queue.Core, now time.Duration) { core.HalfTick(now, s.Conn, tick/2) })
	})
}

// stop ends the attempt that is planned or active. The mutex is held.
func (t *tickLearner) stop() {
	if t.cancel == nil {
		return
	}
	t.cancel()
	t.cancel = nil
	if t.timer.Stop() {
		t.active.Done()
	}
}

// close ends the attempts, and waits for them.
func (t *tickLearner) close() {
	t.mu.Lock()
	t.closed = true
	t.stop()
	t.mu.Unlock()
	t.active.Wait()
}
