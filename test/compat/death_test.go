package compat

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock/test/harness"
)

// mortal is the timeout of the sessions that expire. A session lasts for what was
// left of it at the death: two thirds, as all clients send a heartbeat in a third
// of it, less what the machine stands still before the death.
const mortal = 12 * time.Second

// bequest is a lock whose holder is killed while another waits for it.
type bequest struct {
	name           string
	holder, waiter string // kinds of clients
	holds, waits   string // kinds of locks
	below          []string
	nodes          int // how many there are when one holds and one waits

	dying, heir *harness.Peer
	granted     chan error // with room for the one value
}

// TestKilledHolderHandsOverToOtherLibrary kills a holder. When its session has expired,
// the waiter is granted, whichever libraries the two use.
func TestKilledHolderHandsOverToOtherLibrary(t *testing.T) {
	queue, semaphore := []string{""}, []string{"/locks", "/leases"}
	onEach(t, func(t *testing.T, s harness.SharedServer) {
		o := newObserver(t, s)
		ctx, cancel := context.WithTimeout(t.Context(), 3*handoverWait)
		defer cancel()
		all := []*bequest{
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
			b.arrange(t, ctx, s, o)
		}
		// All at once, as each takes the rest of a session's timeout.
		died := time.Now()
		for _, b := range all {
			b.dying.Kill()
		}
		for _, b := range all {
			if err := <-b.granted; err != nil {
				t.Errorf("%s: %v", b.name, err)
				continue
			}
			// How long after its end a session is found expired is the machine's affair.
			if took := time.Since(died); took < mortal/3 {
				t.Errorf("%s: granted %v after the death, of a session of %v", b.name, took, mortal)
			} else {
				t.Logf("%s: granted by %v after the death", b.name, took)
			}
			if err := b.heir.Release(ctx); err != nil {
				t.Errorf("%s: %v", b.name, err)
			}
		}
	})
}

// arrange has one hold and another wait.
func (b *bequest) arrange(t *testing.T, ctx context.Context, s harness.SharedServer, o observer) {
	t.Helper()
	path := s.Chroot + "/" + strings.ReplaceAll(b.name, " ", "-")
	b.dying, b.heir = startKind(t, b.holder, s.Addr, mortal), startKind(t, b.waiter, s.Addr, harness.PeerSessionTimeout)
	b.granted = make(chan error, 1)
	if _, err := b.dying.Acquire(ctx, b.holds, path, patience); err != nil {
		t.Fatal(err)
	}
	go func() { // ends with the grant, or with ctx
		_, err := b.heir.Acquire(ctx, b.waits, path, 3*handoverWait)
		b.granted <- err
	}()
	below := slices.Clone(b.below)
	// The paths of the directories in which the queue shows.
	for i := range below {
		below[i] = path + below[i]
	}
	o.await(t, ctx, b.nodes, below...)
}
