package locks

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/zklock/zklock/zk"
)

// A pinger holds a lock as other libraries do: it made an ephemeral znode, and
// takes the lock for its own while its server answers, or until it is told that
// the session is over. It has the same servers, timeout and faults as the holder
// beside which it stands, and must be seen to hold beside its successor: then the
// fault is the one that was meant.
type pinger struct {
	client *zk.Client
	path   string
	stop   func()        // ends the asking and the listening
	ended  chan struct{} // closed when the asking has ended

	mu      sync.Mutex
	heard   time.Time // when the last request was sent that was answered
	expired bool      // it was told that its session is over
}

// pause between two of a pinger's pings.
const pingPause = 50 * time.Millisecond

// newPinger takes the lock for the client, whose end the caller sees to.
func newPinger(t *testing.T, ctx context.Context, client *zk.Client, path string) *pinger {
	t.Helper()
	if _, _, err := client.Create(ctx, path, nil, nil, zk.ModeEphemeral); err != nil {
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

// ask sends a read, which a server answers by itself as it does a ping, again and
// again.
func (p *pinger) ask(ctx context.Context) {
	defer close(p.ended)
	for rest(ctx, pingPause) {
		p.client.Go(zk.ExistsOp("/", false), func(r zk.Result) {
			if r.Err == nil {
				p.mu.Lock()
				defer p.mu.Unlock()
				p.heard = time.Now().Add(r.Sent - r.Received)
			}
		})
	}
}

// until is until when the pinger takes itself for the holder: for a session timeout
// from the last ping that was answered, if nothing else is told.
func (p *pinger) until(timeout time.Duration) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.heard.Add(timeout)
}

// told reports whether a server has told that the session is over, which is what
// most libraries go by.
func (p *pinger) told() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.expired
}

// succeed waits for the lock's znode to go, and makes it the client's: when it
// returns two hold, if the pinger still does.
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

// rest waits, and reports whether ctx goes on.
func rest(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
