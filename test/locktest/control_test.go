package locktest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/zklock/zklock/test/harness"
	"github.com/zklock/zklock/zk"
)

// A pinger holds a lock like other libraries. It has created an ephemeral znode, and assumes
// that it holds the lock while its server answers and the session has not ended. It has the
// same server, timeout, and faults as a group of holders. It must hold at the same time as its
// successor, which shows that the fault is the intended one.
type pinger struct {
	client *zk.Client
	path   string
	stop   func()        // stops the pings and the listener
	ended  chan struct{} // closed when the pings have stopped

	mu      sync.Mutex
	heard   time.Time // when the last answered request was sent
	expired bool      // a server has reported the end of the session
}

// pingPause is the time between two pings of a pinger.
const pingPause = 50 * time.Millisecond

// newPinger acquires the lock for the client, which the caller closes.
func newPinger(t *testing.T, ctx context.Context, client *zk.Client, path string) *pinger {
	t.Helper()
	if err := succeed(ctx, client, path); err != nil {
		t.Fatal(err)
	}
	p := &pinger{client: client, path: path, heard: time.Now(), ended: make(chan struct{})}
	unlisten := client.Listen(zk.Listener{State: func(s zk.StateChange) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.expired = p.expired || s.State == zk.Expired
	}})
	asking, cancel := context.WithCancel(ctx)
	p.stop = func() {
		cancel()
		unlisten()
		<-p.ended
	}
	go p.ask(asking) // ends with asking
	return p
}

// ask repeats a read. A follower answers it without the leader, like a ping.
func (p *pinger) ask(ctx context.Context) {
	defer close(p.ended)
	for harness.Sleep(ctx, pingPause) {
		p.client.Go(zk.ExistsOp("/", false), func(r zk.Result) {
			if r.Err == nil {
				p.mu.Lock()
				defer p.mu.Unlock()
				p.heard = time.Now().Add(r.Sent - r.Received)
			}
		})
	}
}

// until returns the time until which the pinger assumes that it holds the lock: a session
// timeout after the last answered ping.
func (p *pinger) until(timeout time.Duration) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.heard.Add(timeout)
}

// told reports whether a server has reported the end of the session. Most libraries rely on
// that.
func (p *pinger) told() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.expired
}

// succeed waits until the lock's znode does not exist, and creates it for the client. If a
// pinger of another client still assumes that it holds, two clients hold.
func succeed(ctx context.Context, client *zk.Client, path string) error {
	for {
		stat, there, gone, err := client.ExistsW(ctx, path)
		switch {
		case errors.Is(err, zk.ErrConnectionLost): // during an election, servers close connections
			continue
		case err != nil:
			return err
		case there && stat.EphemeralOwner == client.SessionID():
			return nil
		case !there:
			_, _, err := client.Create(ctx, path, nil, nil, zk.ModeEphemeral)
			if errors.Is(err, zk.ErrNodeExists) || errors.Is(err, zk.ErrConnectionLost) {
				continue
			}
			return err
		}
		select {
		case <-gone:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
