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

// A pinger holds a lock as other libraries do: it created an ephemeral znode, and assumes
// that it holds the lock while its server answers, or until it learns that the session has
// ended. It has the same servers, timeout, and faults as the holder next to it, and must
// hold at the same time as its successor: that shows that the fault is the intended one.
type pinger struct {
	client *zk.Client
	path   string
	stop   func()        // ends the asking and the listening
	ended  chan struct{} // closed when the asking has ended

	mu      sync.Mutex
	heard   time.Time // when the last request was sent that was answered
	expired bool      // it was told that its session is over
}

// pingPause is the time between two pings of a pinger.
const pingPause = 50 * time.Millisecond

// newPinger takes the lock for the client, which the caller closes.
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

// ask repeats a read, which a server answers by itself like a ping.
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

// until returns until when the pinger assumes that it holds: a session timeout after the
// last answered ping, unless it learns otherwise.
func (p *pinger) until(timeout time.Duration) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.heard.Add(timeout)
}

// told reports whether a server has reported the end of the session, which is what most
// libraries rely on.
func (p *pinger) told() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.expired
}

// succeed waits until the lock's znode is deleted or does not exist, and creates it for the
// client. When it returns, two clients hold if the pinger of another client still does.
func succeed(ctx context.Context, client *zk.Client, path string) error {
	for {
		stat, there, gone, err := client.ExistsW(ctx, path)
		switch {
		case errors.Is(err, zk.ErrConnectionLost): // servers that change their leader let clients go
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
