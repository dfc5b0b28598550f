package ui

import (
	"context"
	"errors"
	"testing"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// A Peer is a client that acquires locks.
type Peer struct {
	t        testing.TB
	locks    *zklock.Client
	enqueued chan struct{} // a value for each wait
}

// NewPeer connects a client with an owner.
func NewPeer(t testing.TB, srv *zktest.Server, owner zklock.Owner) *Peer {
	t.Helper()
	p := &Peer{t: t, enqueued: make(chan struct{}, 1)}
	c, err := zklock.Dial(t.Context(), srv.Servers(), &zklock.Options{
		DialContext: srv.DialContext,
		Owner:       &owner,
		OnWait:      func(zklock.Event) { p.enqueued <- struct{}{} },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil && !errors.Is(err, zklock.ErrClosed) {
			t.Errorf("close a peer: %v", err)
		}
	})
	p.locks = c
	return p
}

// Hold acquires a free lock.
func (p *Peer) Hold(l *zklock.Lock) *zklock.Hold {
	p.t.Helper()
	h, err := l.TryAcquire(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	return h
}

// Wait enqueues for a held lock, and returns when the entry exists. The channel receives the
// hold. The goroutine ends with the test at the latest.
func (p *Peer) Wait(l *zklock.Lock) <-chan *zklock.Hold {
	p.t.Helper()
	held := make(chan *zklock.Hold, 1)
	ctx := p.t.Context()
	go func() {
		defer close(held)
		h, err := l.Acquire(ctx)
		if err == nil {
			held <- h
		} else if ctx.Err() == nil {
			p.t.Errorf("%s: %v", l.Path(), err)
		}
	}()
	select {
	case <-p.enqueued:
	case <-ctx.Done():
	}
	return held
}

func (p *Peer) Mutex(name string) *zklock.Lock { return p.locks.Mutex(name) }

func create(t *testing.T, z *zk.Client, path string, data []byte, mode zk.CreateMode) {
	t.Helper()
	if _, _, err := z.Create(t.Context(), path, data, nil, mode); err != nil {
		t.Fatal(err)
	}
}

func release(t testing.TB, h *zklock.Hold) {
	t.Helper()
	if err := h.Release(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
}

// await waits for the hold of a waiter.
func await(t testing.TB, held <-chan *zklock.Hold) *zklock.Hold {
	t.Helper()
	h := <-held
	if h == nil {
		t.Fatal("an acquire failed")
	}
	return h
}

// named returns an owner.
func named(host string, pid int, command string) zklock.Owner {
	return zklock.Owner{Host: host, PID: pid, User: "deploy", Command: command, Version: "zklock " + zklock.Version}
}
