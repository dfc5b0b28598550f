package locktest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/test/harness"
	"github.com/zklock/zklock/zk"
)

// A balancer connects a client to one server at a time, like a load balancer.
type balancer struct {
	mu     sync.Mutex
	server string
	conns  []net.Conn
	dialed chan struct{}
}

func newBalancer(server string) *balancer {
	return &balancer{server: server, dialed: make(chan struct{}, 100)}
}

func (b *balancer) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	b.mu.Lock()
	server := b.server
	b.mu.Unlock()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", server)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.server != server {
		_ = conn.Close()
		return nil, errors.New("the balancer uses another server now")
	}
	b.conns = append(b.conns, conn)
	select {
	case b.dialed <- struct{}{}:
	default:
	}
	return conn, nil
}

// move closes the connections. New connections go to another server.
func (b *balancer) move(server string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.server = server
	for _, conn := range b.conns {
		_ = conn.Close()
	}
	for b.conns = nil; len(b.dialed) > 0; {
		<-b.dialed
	}
}

// TestLateRequestsOfMovedSession checks requests that reach the leader after the client has
// moved to another server. Follower A is cut off from the leader. It has an unanswered delete
// and create of the client, and a later request to resume the session, which the client gives
// up. In some rounds, A is killed. When these requests reach the leader, it moves the session
// back to A, and may accept the delete and the create.
func TestLateRequestsOfMovedSession(t *testing.T) {
	t.Run("present release", func(t *testing.T) { lateRequestsOfMovedSession(t, "", 8) })
	t.Run("3.4", func(t *testing.T) { lateRequestsOfMovedSession(t, harness.Release34, 4) })
}

func lateRequestsOfMovedSession(t *testing.T, release string, rounds int) {
	const timeout = 8 * time.Second
	n := harness.NewNetwork(t, 3)
	ensemble := harness.StartEnsembleAt(t, n.Placements(), harness.ServerConfig{SyncLimit: 20, Release: release})
	ctx := t.Context()
	followers, err := ensemble.WaitFollowers(ctx, 2)
	if err != nil {
		t.Fatal(err)
	}
	a, b := followers[0], followers[1]
	link := n.Hosts[a.ID()-1]
	waits := make(chan string, 1000) // the paths for which the other client waits
	dial := func(via *balancer, onWait func(zklock.Event)) *zklock.Client {
		c, err := zklock.Dial(ctx, "ensemble:2181", &zklock.Options{DialContext: via.dial, SessionTimeout: timeout, OnWait: onWait})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	other := dial(newBalancer(b.Addr()), func(e zklock.Event) { waits <- e.Path })
	defer other.Close()
	for round := range rounds {
		killed := round >= 6
		via := newBalancer(a.Addr())
		mine := dial(via, nil)
		hold, err := mine.NodeLock("node").Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		queue := fmt.Sprint("queue", round)
		if h, err := other.Mutex(queue).Acquire(ctx); err != nil { // creates the parent
			t.Fatal(err)
		} else if err := h.Release(ctx); err != nil {
			t.Fatal(err)
		}
		if err := link.CutQuorum(); err != nil {
			t.Fatal(err)
		}
		canceled, cancel := context.WithCancel(ctx)
		acquired, released := make(chan error, 1), make(chan error, 1)
		create := func() {
			_, err := mine.Mutex(queue).Acquire(canceled)
			acquired <- err
		}
		remove := func() { released <- hold.Release(ctx) }
		requests := []func(){create, remove}
		if round%2 == 0 { // the leader may refuse the first request and accept the second one
			slices.Reverse(requests)
		}
		for _, request := range requests {
			go request()                       // ends with cancel, or the release
			time.Sleep(100 * time.Millisecond) // until A has the request
		}
		via.move(a.Addr())
		<-via.dialed
		time.Sleep(200 * time.Millisecond) // until A has the request to resume
		cancel()
		if killed {
			a.Kill()
		}
		via.move(b.Addr())
		<-via.dialed
		if err := <-acquired; !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		select {
		case err := <-released:
			released <- err
		case <-time.After(time.Second): // the client may not delete the znode yet
		}
		for len(waits) > 0 {
			<-waits // of an earlier round
		}
		taken := make(chan *zklock.Hold, 1)
		go func() { // ends with the acquire
			h, err := other.NodeLock("node").Acquire(ctx)
			if err != nil {
				t.Error(err)
			}
			taken <- h
		}()
		for has := false; !has; { // until the other client holds the lock or waits for it
			select {
			case h := <-taken:
				taken <- h
				has = true
			case path := <-waits:
				has = strings.HasSuffix(path, "/node")
			}
		}
		if err := link.Heal(); err != nil {
			t.Fatal(err)
		}
		if killed { // the kernel still sends the requests
			if err := a.Restart(ctx); err != nil {
				t.Fatal(err)
			}
		}
		late, err := zk.Dial(ctx, a.Addr(), nil) // A handles it after the older requests
		if err != nil {
			t.Fatal(err)
		}
		_ = late.Close()
		if err := <-released; err != nil {
			t.Error(err)
		}
		h := <-taken
		if h == nil {
			t.FailNow()
		}
		select {
		case <-h.Done():
			t.Errorf("round %d: a late delete deleted another client's znode: %v", round, h.Err())
		case <-time.After(timeout / 4):
			if err := h.Release(ctx); err != nil {
				t.Error(err)
			}
		}
		within, stop := context.WithTimeout(ctx, timeout)
		if h, err := other.Mutex(queue).Acquire(within); err != nil {
			t.Errorf("round %d: a late create blocks the lock: %v", round, err)
		} else if err := h.Release(ctx); err != nil {
			t.Error(err)
		}
		stop()
		_ = mine.Close()
	}
}
