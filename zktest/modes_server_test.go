package zktest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/zk"
)

func TestModesPause(t *testing.T) {
	const pause = 150 * time.Millisecond
	modes(t, func(t *testing.T, s setup) {
		c := s.dial(t, session(time.Hour))
		s.srv.Pause()
		s.srv.Pause() // it is paused already
		began := time.Now()
		time.AfterFunc(pause, s.srv.Resume)
		mustCreate(t, c, "/x", zk.ModePersistent)
		if d := time.Since(began); d < pause {
			t.Errorf("answered %v after a pause of %v began", d, pause)
		}
		s.srv.Resume() // it runs already
	})
}

func TestModesRestart(t *testing.T) {
	modes(t, func(t *testing.T, s setup) {
		c := s.dial(t, session(time.Hour))
		mustCreate(t, c, "/e", zk.ModeEphemeral)
		id := c.SessionID()
		for _, stop := range []func(){func() {}, s.srv.Stop, s.srv.Crash, s.srv.Pause} {
			stop()
			s.srv.Restart(t)
			wantNode(t, c, "/e", true)
		}
		if c.SessionID() != id {
			t.Error("the session did not survive")
		}
	})
}

func TestModesJumpSequence(t *testing.T) {
	modes(t, func(t *testing.T, s setup) {
		c := s.dial(t)
		mustCreate(t, c, "/q", zk.ModePersistent)
		must(t, s.srv.JumpSequence("/q", 1<<31-2))
		if err := s.srv.JumpSequence("/q", 5); err == nil {
			t.Error("the numbers went back")
		}
		s.srv.Restart(t)
		for _, want := range []string{"/q/n-2147483646", "/q/n-2147483647"} {
			path, _, err := c.Create(t.Context(), "/q/n-", nil, zk.OpenACL(), zk.ModePersistentSequential)
			for errors.Is(err, zk.ErrConnectionLost) {
				path, _, err = c.Create(t.Context(), "/q/n-", nil, zk.OpenACL(), zk.ModePersistentSequential)
			}
			if path != want {
				t.Errorf("created %q, %v; want %s", path, err, want)
			}
		}
		s.srv.Pause()
		if err := s.srv.JumpSequence("/q", 1<<31-1); err == nil || !strings.Contains(err.Error(), "paused") {
			t.Errorf("a server that is paused: %v", err)
		}
		s.srv.Stop()
		if err := s.srv.JumpSequence("/q", 5); err == nil {
			t.Error("a server that is stopped jumped")
		}
	})
}

// TestModesDisk checks that acknowledged writes survive a failed disk, a repair, and a restart.
func TestModesDisk(t *testing.T) {
	for name, fail := range map[string]func(*Server, testing.TB){
		"full":  (*Server).FillDisk,
		"EIO":   func(s *Server, t testing.TB) { s.FailDisk(t, nil) },
		"other": func(s *Server, t testing.TB) { s.FailDisk(t, syscall.EROFS) },
	} {
		t.Run(name, func(t *testing.T) {
			modes(t, func(t *testing.T, s setup) {
				c := s.dial(t, session(time.Hour))
				mustCreate(t, c, "/kept", zk.ModePersistent)
				fail(s.srv, t)
				// The server acknowledges no more writes.
				ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
				defer cancel()
				if _, _, err := c.Create(ctx, "/lost", nil, zk.OpenACL(), zk.ModePersistent); err == nil {
					t.Error("a create was acknowledged that the disk refused")
				}
				s.srv.RepairDisk(t)
				s.srv.Restart(t)
				wantNode(t, c, "/kept", true)
			})
		})
	}
}

// failing is a test that records the message of Fatal.
type failing struct {
	testing.TB
	why string
}

func (f *failing) Helper() {}

func (f *failing) Fatal(args ...any) {
	f.why = fmt.Sprint(args...)
	panic(f)
}

// failure returns the message of run's Fatal, or "".
func failure(t testing.TB, run func(testing.TB)) (why string) {
	f := &failing{TB: t}
	defer func() {
		if recover() != nil {
			why = f.why
		}
	}()
	run(f)
	return ""
}

func TestDiskFaultsNeedDataInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := Start(t, Volatile)
		if failure(t, srv.FillDisk) == "" {
			t.Error("FillDisk of a server without a disk succeeded")
		}
	})
}

// TestFaultsOfRouteAffectOnlyItsClients cuts off one of two clients.
func TestFaultsOfRouteAffectOnlyItsClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := Start(t)
		way := srv.Route(t)
		partitioned, other := way.Dial(t, session(4*time.Second)), srv.Dial(t)
		mustCreate(t, partitioned, "/e", zk.ModeEphemeral)
		st := watch(t, partitioned)
		way.Partition()
		st.await(t, zk.Disconnected)
		time.Sleep(5 * time.Second) // of the bubble
		wantNode(t, other, "/e", false)
		// Faults of the server also affect the route.
		way.Heal()
		st.await(t, zk.Connected)
		f := srv.DropReply(Match{Op: "create2"})
		lostCreate(t, partitioned, "/x")
		<-f.Done()
		if err := way.ExpireClient(other); err != nil {
			t.Errorf("a route does not know the sessions of its server: %v", err)
		}
	})
}

func TestNewWithoutTest(t *testing.T) {
	srv, err := New(Volatile)
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	addr, err := srv.Listen()
	if err != nil {
		t.Fatal(err)
	}
	if again := srv.ListenTCP(t); again != addr {
		t.Errorf("a second port %s next to %s", again, addr)
	}
	mustCreate(t, dialTCP(t, addr), "/x", zk.ModePersistent)
	if _, err := New(OnDisk("/dev/null/none")); err == nil {
		t.Error("a server started without a usable directory")
	}
}
