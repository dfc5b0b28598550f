package locktest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/test/harness"
)

// The ensemble and the sessions of TestQuorumLost.
const (
	aloneTick    = 500 * time.Millisecond
	aloneTimeout = 6 * time.Second
)

// TestQuorumLost kills two of three servers. The hold is in jeopardy and lasts until its
// deadline. Without a quorum, neither a waiter nor a new client acquires. With a quorum again,
// the waiter is granted, with a larger token.
func TestQuorumLost(t *testing.T) {
	c := harness.StartEnsemble(t, 3, harness.ServerConfig{TickTime: aloneTick})
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if _, err := c.WaitLeader(ctx); err != nil {
		t.Fatal(err)
	}
	endangered := make(chan struct{}, 1)
	holds := dial(t, ctx, c.ConnectString(), &zklock.Options{SessionTimeout: aloneTimeout, OnJeopardy: func(e zklock.Event) {
		if e.Err != nil {
			select {
			case endangered <- struct{}{}:
			default:
			}
		}
	}})
	others := dial(t, ctx, c.ConnectString(), &zklock.Options{SessionTimeout: 20 * aloneTick})
	h := &holder{path: "alone"}
	h.acquireAndQueue(t, ctx, holds, others)
	hold := h.hold

	begun, left := time.Now(), hold.Remaining()
	for _, n := range c.Servers[1:] {
		n.Kill()
	}
	comes := make(chan error, 1)
	go func() { // ends with its context
		short, stop := context.WithTimeout(ctx, aloneTimeout*3/2)
		defer stop()
		_, err := others.Mutex("free").Acquire(short)
		comes <- err
	}()
	select {
	case <-hold.Done():
	case <-ctx.Done():
		t.Fatal("the hold lasts longer than its deadline")
	}
	if held := time.Since(begun); !errors.Is(hold.Err(), zklock.ErrLost) || held < left {
		t.Errorf("without a quorum, after %v, with %v left at first: %v", held, left, hold.Err())
	}
	select {
	case <-endangered:
	default:
		t.Error("lost without jeopardy before")
	}
	if err := <-comes; !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("an acquire without a quorum: %v", err)
	}
	if len(h.granted) > 0 {
		t.Fatal("granted without a quorum")
	}

	for _, n := range c.Servers[1:] {
		if err := n.Restart(ctx); err != nil {
			t.Fatal(err)
		}
	}
	h.next(t, ctx)
}
