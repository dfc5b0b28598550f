package compat

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock/test/harness"
)

// crashSession is the timeout of the sessions that expire. All clients send a heartbeat in each
// third of it. So a session lasts two thirds after the kill, minus a stall of the machine before.
const crashSession = 12 * time.Second

// crash is a lock whose holder is killed while another client waits.
type crash struct {
	name           string
	holder, waiter string // kinds of clients
	holds, waits   string // kinds of locks
	below          []string
	nodes          int // the number of znodes with one holder and one waiter

	first, second *harness.Peer // the holder and the waiter
	granted       chan error    // buffered
}

// TestKilledHolderHandsOverToOtherLibrary kills a holder. When its session has expired,
// the waiter is granted, whichever libraries the two use.
func TestKilledHolderHandsOverToOtherLibrary(t *testing.T) {
	queue, semaphore := []string{""}, []string{"/locks", "/leases"}
	onEach(t, func(t *testing.T, s harness.SharedServer) {
		o := newObserver(t, s)
		ctx, cancel := context.WithTimeout(t.Context(), 3*handoverWait)
		defer cancel()
		all := []*crash{
			{name: "ours then Curator's", holder: "zklock", waiter: "curator", holds: "mutex", waits: "mutex", below: queue, nodes: 2},
			{name: "Curator's then ours", holder: "curator", waiter: "zklock", holds: "mutex", waits: "mutex", below: queue, nodes: 2},
			{name: "ours then kazoo's", holder: "zklock", waiter: "kazoo", holds: "mutex", waits: "lock-shared", below: queue, nodes: 2},
			{name: "kazoo's then ours", holder: "kazoo", waiter: "zklock", holds: "lock", waits: "mutex", below: queue, nodes: 2},
			{name: "kazoo's reader then its writer", holder: "kazoo", waiter: "kazoo", holds: "read", waits: "write", below: queue, nodes: 2},
			{name: "our reader then Curator's writer", holder: "zklock", waiter: "curator", holds: "read", waits: "write", below: queue, nodes: 2},
			{name: "Curator's reader then our writer", holder: "curator", waiter: "zklock", holds: "read", waits: "write", below: queue, nodes: 2},
			{name: "our permit then Curator's", holder: "zklock", waiter: "curator", holds: "semaphore:1", waits: "semaphore:1", below: semaphore, nodes: 3},
			{name: "Curator's permit then ours", holder: "curator", waiter: "zklock", holds: "semaphore:1", waits: "semaphore:1", below: semaphore, nodes: 3},
		}
		for _, b := range all {
			b.start(t, ctx, s, o)
		}
		// All at once, because each takes the rest of a session timeout.
		killed := time.Now()
		for _, b := range all {
			b.first.Kill()
		}
		for _, b := range all {
			if err := <-b.granted; err != nil {
				t.Errorf("%s: %v", b.name, err)
				continue
			}
			// A busy machine may expire the session later.
			if took := time.Since(killed); took < crashSession/3 {
				t.Errorf("%s: granted %v after the kill, with a session timeout of %v", b.name, took, crashSession)
			} else {
				t.Logf("%s: granted by %v after the kill", b.name, took)
			}
			if err := b.second.Release(ctx); err != nil {
				t.Errorf("%s: %v", b.name, err)
			}
		}
	})
}

// start starts both clients, and returns when the second one waits.
func (b *crash) start(t *testing.T, ctx context.Context, s harness.SharedServer, o observer) {
	t.Helper()
	path := s.Chroot + "/" + strings.ReplaceAll(b.name, " ", "-")
	b.first, b.second = startKind(t, b.holder, s.Addr, crashSession), startKind(t, b.waiter, s.Addr, harness.PeerSessionTimeout)
	b.granted = make(chan error, 1)
	if _, err := b.first.Acquire(ctx, b.holds, path, patience); err != nil {
		t.Fatal(err)
	}
	go func() { // ends with the grant, or with ctx
		_, err := b.second.Acquire(ctx, b.waits, path, 3*handoverWait)
		b.granted <- err
	}()
	below := slices.Clone(b.below)
	for i := range below {
		below[i] = path + below[i]
	}
	o.await(t, ctx, b.nodes, below...)
}
