package zklock_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// dialSync dials a client whose heartbeats are syncs. The ticks of zktest's server
// are an eighth of the timeout at most.
func dialSync(t *testing.T, srv *zktest.Server, change func(*zklock.Options)) *zklock.Client {
	t.Helper()
	opts := &zklock.Options{
		SessionTimeout: timeout, DialContext: srv.DialContext, SyncHeartbeat: true, ServerTick: timeout / 8,
	}
	if change != nil {
		change(opts)
	}
	c, err := zklock.Dial(t.Context(), srv.Servers(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// TestSyncHeartbeat: a hold lives on by syncs alone, which write nothing; by
// heartbeats that are quorum writes the zxid grows.
func TestSyncHeartbeat(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		for _, row := range []struct {
			name   string
			dial   func() *zklock.Client
			writes bool
		}{
			{"sync", func() *zklock.Client { return dialSync(t, srv, nil) }, false},
			{"quorum writes", func() *zklock.Client { return dial(t, srv) }, true},
		} {
			c := row.dial()
			h := acquire(t, c.Mutex("sync"))
			before := srv.Server().Stats().Zxid
			time.Sleep(10 * timeout)
			if h.Err() != nil || h.Remaining() < timeout/3 {
				t.Errorf("%s: after ten timeouts: %v, %v left", row.name, h.Err(), h.Remaining())
			}
			if after := srv.Server().Stats().Zxid; (after > before) != row.writes {
				t.Errorf("%s: the zxid went from %#x to %#x", row.name, before, after)
			}
			if err := h.Release(t.Context()); err != nil {
				t.Error(err)
			}
			c.Close()
		}
	})
}

// TestSyncHeartbeatEntryDeleted: a hold whose entry an operator deletes is lost
// within an eighth of the timeout, whether it waited or not, and whether the server
// has told of the watch by itself.
func TestSyncHeartbeatEntryDeleted(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		op := srv.Dial(t)
		for _, after := range []time.Duration{0, timeout / 16, timeout / 4, 3 * timeout} {
			h := acquire(t, dialSync(t, srv, nil).Mutex("deleted"))
			time.Sleep(after)
			begun := time.Now()
			if err := op.Delete(t.Context(), h.Node(), -1); err != nil {
				t.Fatal(err)
			}
			<-h.Done()
			if d := time.Since(begun); !errors.Is(h.Err(), zklock.ErrLost) || d > timeout/8 {
				t.Errorf("deleted after %v: %v later %v", after, d, h.Err())
			}
		}
	})
}

// TestSyncHeartbeatSilence: without an answer the hold is in jeopardy, and then
// lost before the server gives the lock away.
func TestSyncHeartbeatSilence(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		told := make(chan error, 10)
		h := acquire(t, dialSync(t, srv, func(o *zklock.Options) {
			o.OnJeopardy = func(e zklock.Event) { told <- e.Err }
		}).Mutex("silence"))
		time.Sleep(10 * timeout)
		begun := time.Now()
		srv.Blackhole(true)
		if err := <-told; err == nil {
			t.Error("recovered first")
		}
		<-h.Done()
		lost := time.Since(begun)
		for srv.Server().Stats().Sessions > 0 {
			time.Sleep(time.Millisecond)
		}
		if expired := time.Since(begun); lost >= expired || lost < timeout/4 {
			t.Errorf("lost after %v, expired after %v", lost, expired)
		}
		srv.Blackhole(false)
	})
}

// TestSyncHeartbeatReconnects: holds live on over connections that are cut.
func TestSyncHeartbeatReconnects(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		h := acquire(t, dialSync(t, srv, nil).Mutex("cut"))
		for range 40 {
			time.Sleep(timeout / 6)
			srv.CutConnections()
		}
		time.Sleep(timeout)
		if h.Err() != nil || h.Remaining() < timeout/3 {
			t.Errorf("%v, %v left", h.Err(), h.Remaining())
		}
	})
}

// TestSyncHeartbeatRefused: what the option's assumption does not hold for is
// refused: ticks that are not known, and sessions of less than four.
func TestSyncHeartbeatRefused(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		for name, o := range map[string]zklock.Options{
			"no tick":         {SyncHeartbeat: true},
			"a negative tick": {SyncHeartbeat: true, ServerTick: -time.Second},
			"tick alone":      {ServerTick: -time.Second},
			"too short":       {SyncHeartbeat: true, ServerTick: timeout/4 + 1},
		} {
			o.SessionTimeout, o.DialContext = timeout, srv.DialContext
			c, err := zklock.Dial(t.Context(), srv.Servers(), &o)
			if !errors.Is(err, zklock.ErrInvalidOptions) {
				t.Errorf("%s: %v", name, err)
			}
			if err == nil {
				c.Close()
			}
		}
		if n := srv.Server().Stats().Sessions; n != 0 {
			t.Errorf("%d sessions are left", n)
		}
	})
}

// TestSyncHeartbeatTooShort: on a session that was dialed elsewhere and is too
// short, heartbeats are quorum writes.
func TestSyncHeartbeatTooShort(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		conn, err := zk.Dial(t.Context(), srv.Servers(), &zk.Options{SessionTimeout: timeout, DialContext: srv.DialContext})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		c := zklock.New(conn, &zklock.Options{SyncHeartbeat: true, ServerTick: timeout / 2})
		defer c.Close()
		acquire(t, c.Mutex("short"))
		before := srv.Server().Stats().Zxid
		time.Sleep(timeout)
		if after := srv.Server().Stats().Zxid; after <= before {
			t.Errorf("the zxid went from %#x to %#x", before, after)
		}
	})
}

// TestResumptionIsNoProof: whoever resumes a session and answers no write may be a
// leader that was deposed and has not noticed: the hold ends at its old deadline,
// however often it is resumed, and is kept by the first write that is answered.
func TestResumptionIsNoProof(t *testing.T) {
	for _, row := range []struct {
		name string
		dial func(*testing.T, *zktest.Server) *zklock.Client
	}{
		{"quorum writes", dial},
		{"sync", func(t *testing.T, srv *zktest.Server) *zklock.Client { return dialSync(t, srv, nil) }},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t)
				h := acquire(t, row.dial(t, srv).Mutex("resumed"))
				time.Sleep(2 * timeout)
				mute := srv.DropRequest(zktest.Match{Op: "multi", Times: -1})
				srv.CutConnections()
				begun, left := time.Now(), h.Remaining()
				for h.Err() == nil && time.Since(begun) < 10*timeout {
					time.Sleep(timeout / 6)
					srv.CutConnections()
				}
				if d := time.Since(begun); d > left+timeout/6 {
					t.Fatalf("after %v, with %v left at first: %v", d, left, h.Err())
				}
				mute.Stop()
				h = acquire(t, row.dial(t, srv).Mutex("resumed"))
				time.Sleep(timeout / 2)
				srv.CutConnections()
				time.Sleep(timeout / 16)
				if h.Err() != nil || h.Remaining() < timeout*7/8 {
					t.Errorf("resumed: %v, %v left", h.Err(), h.Remaining())
				}
			})
		})
	}
}
