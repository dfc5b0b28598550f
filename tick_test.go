package zklock_test

import (
	"context"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zkserver"
	"github.com/zklock/zklock/zktest"
)

// TestTickIsLearned checks when a client asks for the servers' tick: once it has lived for
// a session timeout, and again on each later connection. Until it knows the tick, and if
// the server refuses the connection, it takes a quarter of the timeout for half a tick.
func TestTickIsLearned(t *testing.T) {
	const timeout = 20 * time.Second
	for name, row := range map[string]struct {
		words    []string
		attempts int64 // connections to ask once
		sessions int64 // of those
	}{
		"conf":    {[]string{"*"}, 1, 0},
		"session": {[]string{"srvr"}, 2, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, func(o *zkserver.Options) {
					o.FourLetterWords, o.TickTime, o.MinSessionTimeout, o.MaxSessionTimeout = row.words, 2*time.Second, 0, 0
				})
				var dials atomic.Int64
				var refuse atomic.Bool // every connection but the first
				c, err := zklock.Dial(t.Context(), srv.Servers(), &zklock.Options{
					SessionTimeout: timeout,
					DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
						if dials.Add(1) > 1 && refuse.Load() {
							return nil, syscall.ECONNREFUSED
						}
						return srv.DialContext(ctx, network, addr)
					},
				})
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				zxid := srv.Server().Stats().Zxid
				// check checks, over an eighth of the timeout, how long the hold lasts if the
				// servers fall silent, and counts what the client did before.
				check := func(what string, h *zklock.Hold, known bool, connections int64) {
					t.Helper()
					if n := dials.Swap(0); n != connections {
						t.Errorf("%s: %d connections, want %d", what, n, connections)
					}
					for range 25 {
						time.Sleep(timeout / 200)
						if left := h.Remaining(); left >= timeout*3/4 != known {
							t.Errorf("%s: %v left, %v; the client knows the tick: want %v", what, left, h.Err(), known)
							return
						}
					}
					if n := srv.Connections(); n != 1 {
						t.Errorf("%s: %d connections are left", what, n)
					}
				}
				time.Sleep(timeout - time.Second)
				if n := srv.Server().Stats().Zxid - zxid; n != 0 || dials.Load() != 1 {
					t.Errorf("a client that has not lived for a session timeout made %d transactions and %d connections", n, dials.Load())
				}
				time.Sleep(timeout)
				if n := srv.Server().Stats().Zxid - zxid; n != 2*row.sessions {
					t.Errorf("a client that asked for the tick once made %d transactions, want %d", n, 2*row.sessions)
				}
				h := acquire(t, c.Mutex("tick"))
				time.Sleep(timeout / 2)
				check("after a session timeout", h, true, 1+row.attempts)

				refuse.Store(true)
				srv.CutConnections()
				time.Sleep(timeout / 2)
				check("on a connection whose server refuses more", h, false, 3)

				refuse.Store(false)
				srv.CutConnections()
				time.Sleep(timeout / 2)
				check("on the next connection", h, true, 1+row.attempts)
			})
		})
	}
}
