package locktest

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/zklock/zklock"
)

// errRefused is the error of a clientNetwork that refuses connections.
var errRefused = errors.New("the network refuses connections")

// clientNetwork is the network of some clients. Its faults affect only these clients.
type clientNetwork struct {
	inner func(ctx context.Context, network, address string) (net.Conn, error) // nil means net.Dialer

	mu      sync.Mutex
	conns   []net.Conn
	refused bool
}

func (c *clientNetwork) dial(ctx context.Context, network, address string) (net.Conn, error) {
	dial := c.inner
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	conn, err := dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refused {
		_ = conn.Close()
		return nil, errRefused
	}
	c.conns = append(c.conns, conn)
	return conn, nil
}

// refuse sets whether new connections fail.
func (c *clientNetwork) refuse(yes bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused = yes
}

// cut closes all connections.
func (c *clientNetwork) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.conns {
		_ = conn.Close()
	}
	c.conns = nil
}

// holder is a client that holds a lock while another client waits for it.
type holder struct {
	name string
	path string

	hold    *zklock.Hold
	session int64
	early   bool           // the hold was lost before the fault
	granted chan grant     // receives the grant of the waiting client
	late    chan time.Time // receives the latest deadline of the hold after its loss
}

// grant is a hold and the time of its grant.
type grant struct {
	hold *zklock.Hold // nil if it was not granted
	at   time.Time
	err  error // of the previous hold at that time
}

// acquireAndQueue makes one client acquire the lock and another one wait for it.
func (h *holder) acquireAndQueue(t *testing.T, ctx context.Context, holds, waits *zklock.Client) {
	t.Helper()
	if err := h.acquire(t, ctx, holds, waits); err != nil {
		t.Fatal(err)
	}
	waitForQueue(t, ctx, waits, h.path, 2)
}

// acquire is acquireAndQueue, but returns before the other client waits.
func (h *holder) acquire(t *testing.T, ctx context.Context, holds, waits *zklock.Client) (err error) {
	if h.hold, err = holds.Mutex(h.path).Acquire(ctx); err != nil {
		return err
	}
	h.granted, h.late = make(chan grant, 1), make(chan time.Time, 1)
	go func() { // ends with the grant, or with ctx
		next, err := waits.Mutex(h.path).Acquire(ctx)
		at := time.Now()
		if err != nil {
			t.Errorf("%s: the next acquire: %v", h.path, err)
		}
		h.granted <- grant{next, at, h.hold.Err()}
	}()
	go h.watch() // ends with the hold
	return nil
}

// next waits until the lock is granted to the waiting client, checks its token, and releases
// that hold.
func (h *holder) next(t *testing.T, ctx context.Context) grant {
	t.Helper()
	g := <-h.granted
	if g.hold == nil {
		t.FailNow()
	}
	if g.hold.Token() <= h.hold.Token() {
		t.Errorf("token %#x after %#x", g.hold.Token(), h.hold.Token())
	}
	if err := g.hold.Release(ctx); err != nil {
		t.Error(err)
	}
	return g
}

// handOver releases the lock, and waits until it is granted to the waiting client.
func (h *holder) handOver(t *testing.T, ctx context.Context) {
	t.Helper()
	if err := h.hold.Release(ctx); err != nil {
		t.Fatal(err)
	}
	h.next(t, ctx)
}

// deadline returns the current deadline of the hold, or zero if it is lost.
func (h *holder) deadline() time.Time {
	at := time.Now()
	if left := h.hold.Remaining(); left > 0 {
		return at.Add(left)
	}
	return time.Time{}
}

// watch reads the deadline of the hold until it is lost.
func (h *holder) watch() {
	var last time.Time
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for h.hold.Err() == nil {
		if d := h.deadline(); d.After(last) {
			last = d
		}
		select {
		case <-h.hold.Done():
		case <-again.C:
		}
	}
	h.late <- last
}

func dial(t *testing.T, ctx context.Context, servers string, opts *zklock.Options) *zklock.Client {
	t.Helper()
	c, err := zklock.Dial(ctx, servers, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// waitForQueue waits until the queue has as many entries as want.
func waitForQueue(t *testing.T, ctx context.Context, c *zklock.Client, path string, want int) {
	t.Helper()
	for {
		entries, err := c.Mutex(path).Inspect(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if len(entries) == want {
			return
		}
	}
}
