package zktest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/zk"
)

// session returns an option that sets the session timeout.
func session(d time.Duration) func(*zk.Options) {
	return func(o *zk.Options) { o.SessionTimeout = d }
}

// states collects the states of a client.
type states struct{ seen chan zk.StateChange }

func watch(t testing.TB, c *zk.Client) *states {
	s := &states{seen: make(chan zk.StateChange, 1000)}
	t.Cleanup(c.Listen(zk.Listener{State: func(ch zk.StateChange) { s.seen <- ch }}))
	return s
}

// await waits for a state, and returns the change and its time.
func (s *states) await(t testing.TB, want zk.State) (zk.StateChange, time.Time) {
	t.Helper()
	timeout := time.After(5 * time.Minute)
	for {
		select {
		case ch := <-s.seen:
			if ch.State == want {
				return ch, time.Now()
			}
		case <-timeout:
			t.Fatalf("the client never became %v", want)
		}
	}
}

// must fails the test for an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func mustCreate(t testing.TB, c *zk.Client, path string, mode zk.CreateMode) {
	t.Helper()
	if _, _, err := c.Create(t.Context(), path, nil, zk.OpenACL(), mode); err != nil {
		t.Fatalf("create %s: %v", path, err)
	}
}

// wantNode checks whether a znode exists. It repeats the request, because a client detects a cut
// connection by the next request.
func wantNode(t testing.TB, c *zk.Client, path string, want bool) {
	t.Helper()
	_, ok, err := c.Exists(t.Context(), path)
	for errors.Is(err, zk.ErrConnectionLost) {
		_, ok, err = c.Exists(t.Context(), path)
	}
	if err != nil || ok != want {
		t.Fatalf("exists %s: %v, %v; want %v", path, ok, err, want)
	}
}

func TestStartAndDial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := Start(t)
		a, b := srv.Dial(t), srv.Dial(t)
		mustCreate(t, a, "/x", zk.ModeEphemeral)
		wantNode(t, b, "/x", true)
		if srv.Addr() != srv.Servers() {
			t.Errorf("Addr %q without a port of TCP", srv.Addr())
		}
		if n := srv.Connections(); n != 2 {
			t.Errorf("%d connections, want 2", n)
		}
	})
}

// TestServersWithoutDialContext checks that Dial needs no DialContext once the server listens on
// TCP. Before that, Dial fails at once and says what is missing.
func TestServersWithoutDialContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, began := Start(t), time.Now()
		for _, servers := range []string{srv.Servers(), srv.Servers() + "/chroot", srv.Route(t).Servers()} {
			_, err := zk.Dial(t.Context(), servers, nil)
			if !errors.Is(err, zk.ErrInvalidServers) || !strings.Contains(err.Error(), "DialContext") {
				t.Errorf("%s: %v", servers, err)
			}
		}
		if d := time.Since(began); d != 0 {
			t.Errorf("failed after %v", d)
		}
	})
	srv := Start(t)
	if addr := srv.ListenTCP(t); srv.Addr() != addr {
		t.Errorf("Addr is %q, want %q", srv.Addr(), addr)
	}
	c, err := zk.Dial(t.Context(), srv.Servers(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	mustCreate(t, c, "/x", zk.ModeEphemeral)
}

func TestRestartKeepsTheData(t *testing.T) {
	for name, test := range map[string]struct {
		opts []Option
		kept bool
	}{
		"default":  {nil, true},
		"on disk":  {[]Option{OnDisk(t.TempDir())}, true},
		"volatile": {[]Option{Volatile}, false},
	} {
		t.Run(name, func(t *testing.T) {
			srv := Start(t, test.opts...)
			mustCreate(t, srv.Dial(t), "/x", zk.ModePersistent)
			srv.Restart(t)
			wantNode(t, srv.Dial(t), "/x", test.kept)
		})
	}
}

func TestStopRefusesUntilRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := Start(t)
		c := srv.Dial(t, session(20*time.Second))
		mustCreate(t, c, "/e", zk.ModeEphemeral)
		before, s := c.SessionID(), watch(t, c)
		srv.Stop()
		s.await(t, zk.Disconnected)
		if _, err := srv.DialContext(t.Context(), "", ""); err == nil {
			t.Error("a stopped server accepted a connection")
		}
		time.Sleep(time.Hour) // a session does not expire while no server counts its timeout
		srv.Restart(t)
		// The server must still know the session, whether the client resumes it or not.
		if n := srv.Server().Stats().Sessions; n != 1 {
			t.Errorf("%d sessions after the restart, want 1 (%#x)", n, before)
		}
	})
}

func TestCrashKeepsWhatWasAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := Start(t)
		c := srv.Dial(t, session(time.Hour))
		for _, path := range []string{"/a", "/b", "/c"} {
			mustCreate(t, c, path, zk.ModePersistent)
			srv.Crash()
			srv.Restart(t)
			wantNode(t, c, path, true)
		}
	})
}

// TestListenFailsInBubbleAndAfterClose: a TCP port in a bubble would stop the bubble's clock.
func TestListenFailsInBubbleAndAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := Start(t)
		for _, open := range []func(testing.TB){
			func(tb testing.TB) { srv.ListenTCP(tb) },
			func(tb testing.TB) { NewProxy(tb, "tcp", "127.0.0.1:2181") },
		} {
			if why := failure(t, open); !strings.Contains(why, "bubble") {
				t.Fatalf("a port was opened in a bubble, failure %q", why)
			}
		}
	})
	srv := Start(t)
	srv.Close()
	if addr, err := srv.Listen(); err == nil {
		t.Errorf("a closed server listens at %s", addr)
	}
}

func TestDialFailsWithinItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := Start(t)
		srv.Refuse(true)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		c, err := zk.Dial(ctx, srv.Servers(), &zk.Options{DialContext: srv.DialContext})
		if err == nil {
			c.Close()
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Dial said %v", err)
		}
		srv.Refuse(false)
		srv.Dial(t)
	})
}
