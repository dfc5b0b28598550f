package ui

import (
	"context"
	"errors"
	"testing"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// A Peer is a process that takes locks, with a session of its own.
type Peer struct {
	t     testing.TB
	locks *zklock.Client
	lined chan struct{} // one for each place in line that it took
}

// NewPeer starts one that says this of itself.
func NewPeer(t testing.TB, srv *zktest.Server, owner zklock.Owner) *Peer {
	t.Helper()
	p := &Peer{t: t, lined: make(chan struct{}, 1)}
	c, err := zklock.Dial(t.Context(), srv.Servers(), &zklock.Options{
		DialContext: srv.DialContext,
		Owner:       &owner,
		OnWait:      func(zklock.Event) { p.lined <- struct{}{} },
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

// Hold takes a lock that is free.
func (p *Peer) Hold(l *zklock.Lock) *zklock.Hold {
	p.t.Helper()
	h, err := l.TryAcquire(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	return h
}

// Wait takes a place in line for a lock that is taken, and returns when it has it.
// The hold comes later. The goroutine ends with the test at the latest.
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
	case <-p.lined:
	case <-ctx.Done():
	}
	return held
}

// Mutex is a peer's name of a mutex.
func (p *Peer) Mutex(name string) *zklock.Lock { return p.locks.Mutex(name) }

// create creates a znode.
func create(t *testing.T, z *zk.Client, path string, data []byte, mode zk.CreateMode) {
	t.Helper()
	if _, _, err := z.Create(t.Context(), path, data, nil, mode); err != nil {
		t.Fatal(err)
	}
}

// release gives a hold back.
func release(t testing.TB, h *zklock.Hold) {
	t.Helper()
	if err := h.Release(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
}

// await is the hold that comes.
func await(t testing.TB, held <-chan *zklock.Hold) *zklock.Hold {
	t.Helper()
	h := <-held
	if h == nil {
		t.Fatal("an acquire failed")
	}
	return h
}

// named is an owner as zklock writes it.
func named(host string, pid int, command string) zklock.Owner {
	return zklock.Owner{Host: host, PID: pid, User: "deploy", Command: command, Version: "zklock " + zklock.Version}
}
