package zkprom

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zktest"
)

// TestLocalHandoffCountsEachHold checks that holds that share a znode count one by one, and so do
// the waiters in the client's own queue.
func TestLocalHandoffCountsEachHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, m := zktest.Start(t), NewLocks(nil)
		c := dial(t, srv, m, zklock.Options{})
		l := c.Mutex("a").LocalHandoff(3)
		h, err := l.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() {
				h, err := l.Acquire(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				time.Sleep(2 * time.Second)
				if err := h.Release(t.Context()); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		time.Sleep(10 * time.Second)
		wants(t, page(t, m),
			`zklock_lock_held{lock="/zklock/a",mode="exclusive"} 1`, `zklock_lock_oldest_hold_seconds{lock="/zklock/a",mode="exclusive"} 10(\.\d+)?`,
			`zklock_lock_waiting{lock="/zklock/a",mode="exclusive"} 2`, `zklock_lock_oldest_wait_seconds{lock="/zklock/a",mode="exclusive"} 10(\.\d+)?`)
		if err := h.Release(t.Context()); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second)
		wants(t, page(t, m),
			`zklock_lock_held{lock="/zklock/a",mode="exclusive"} 1`, `zklock_lock_oldest_hold_seconds{lock="/zklock/a",mode="exclusive"} 1(\.\d+)?`,
			`zklock_lock_waiting{lock="/zklock/a",mode="exclusive"} 1`, `zklock_lock_oldest_wait_seconds{lock="/zklock/a",mode="exclusive"} 11(\.\d+)?`)
		all.Wait()
		synctest.Wait()
		wants(t, page(t, m),
			`zklock_lock_held{lock="/zklock/a",mode="exclusive"} 0`, `zklock_lock_waiting{lock="/zklock/a",mode="exclusive"} 0`,
			`zklock_lock_acquires_total{lock="/zklock/a",mode="exclusive",outcome="acquired"} 3`,
			`zklock_lock_releases_total{lock="/zklock/a",mode="exclusive",result="confirmed"} 3`,
			`zklock_lock_hold_seconds_sum{lock="/zklock/a",mode="exclusive"} 14(\.\d+)?`,
			`zklock_lock_queue_length_sum{lock="/zklock/a",mode="exclusive"} 3`, `zklock_lock_queue_length_count{lock="/zklock/a",mode="exclusive"} 3`)
	})
}

// TestReleaseAsyncEndsHoldDuration checks that a hold counts as held until the servers confirm its
// release, with the time until ReleaseAsync. If the client hands over the lock in memory, only one
// hold counts.
func TestReleaseAsyncEndsHoldDuration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, m := zktest.Start(t), NewLocks(nil)
		c := dial(t, srv, m, zklock.Options{})
		h, err := c.Mutex("a").Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		next := make(chan *zklock.Hold)
		go func() { // ends with the grant
			h, err := c.Mutex("a").Acquire(t.Context())
			if err != nil {
				t.Error(err)
			}
			next <- h
		}()
		synctest.Wait()
		time.Sleep(10 * time.Second)
		srv.Delay(time.Second / 2)
		if err := h.ReleaseAsync(); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Millisecond)
		wants(t, page(t, m), `zklock_lock_held{lock="/zklock/a",mode="exclusive"} 1`,
			`zklock_lock_releases_total{lock="/zklock/a",mode="exclusive",result="confirmed"} 0`)
		h = <-next
		time.Sleep(2 * time.Second)
		wants(t, page(t, m),
			`zklock_lock_held{lock="/zklock/a",mode="exclusive"} 1`, `zklock_lock_oldest_hold_seconds{lock="/zklock/a",mode="exclusive"} 2(\.\d+)?`,
			`zklock_lock_hold_seconds_sum{lock="/zklock/a",mode="exclusive"} 10`, `zklock_lock_hold_seconds_count{lock="/zklock/a",mode="exclusive"} 1`,
			`zklock_lock_wait_seconds_sum{lock="/zklock/a",mode="exclusive"} 10(\.\d+)?`)
		srv.Delay(0)
		if err := h.Release(t.Context()); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		wants(t, page(t, m), `zklock_lock_held{lock="/zklock/a",mode="exclusive"} 0`,
			`zklock_lock_releases_total{lock="/zklock/a",mode="exclusive",result="confirmed"} 2`)
	})
}
