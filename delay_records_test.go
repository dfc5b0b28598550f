package zklock_test

import (
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// TestLockDelaySparesOthers: what stands where records do, and is none, is neither
// waited for nor written to nor deleted: a lock of that name has its entries there.
func TestLockDelaySparesOthers(t *testing.T) {
	for _, layout := range []zklock.Layout{{}, zklock.KazooLayout(), zklock.MixedLayout()} {
		tidy(t, func(t *testing.T, srv *zktest.Server) {
			a, b, op := dialWith(t, srv, zklock.Options{LockDelay: delay, Layout: layout}), dialWith(t, srv, zklock.Options{Layout: layout}), srv.Dial(t)
			other := acquire(t, b.Mutex("/spared-held"))
			if _, _, err := op.Create(t.Context(), "/spared-held/config", []byte("theirs"), nil, zk.ModePersistent); err != nil {
				t.Fatal(err)
			}
			begun := time.Now()
			release(t, acquire(t, a.Mutex("/spared")))
			if took := time.Since(begun); took > time.Second {
				t.Errorf("%s: waited %v for nobody", layout, took)
			}
			time.Sleep(timeout)
			if err := other.Err(); err != nil {
				t.Errorf("%s: another lock's hold: %v", layout, err)
			}
			if _, stat, err := op.Get(t.Context(), "/spared-held/config"); err != nil || stat.Version != 0 {
				t.Errorf("%s: another's znode: %+v, %v", layout, stat, err)
			}
			// A record beside them is one all the same.
			h := acquire(t, a.Mutex("/spared"))
			if err := srv.ExpireSession(h.Session()); err != nil {
				t.Fatal(err)
			}
			<-h.Done()
			begun = time.Now()
			release(t, acquire(t, a.Mutex("/spared")))
			if took := time.Since(begun); took < delay-timeout || took > delay+timeout {
				t.Errorf("%s: granted after %v, not %v", layout, took, delay)
			}
			if err := other.Err(); err != nil {
				t.Errorf("%s: another lock's hold: %v", layout, err)
			}
			release(t, other)
			remove(t, op, "/spared-held/config")
		})
	}
}
