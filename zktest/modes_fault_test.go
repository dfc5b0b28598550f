package zktest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zklock/zklock/zk"
)

// lostCreate creates a znode on a connection that ends before the reply.
func lostCreate(t *testing.T, c *zk.Client, path string) {
	t.Helper()
	_, _, err := c.Create(t.Context(), path, nil, zk.OpenACL(), zk.ModePersistent)
	if !errors.Is(err, zk.ErrConnectionLost) {
		t.Errorf("the create of %s said %v, want that its connection was lost", path, err)
	}
}

func TestModesDropReply(t *testing.T) {
	modes(t, func(t *testing.T, s setup) {
		c := s.dial(t)
		f := s.DropReply(Match{Op: "create2", Path: "/x"})
		lostCreate(t, c, "/x")
		<-f.Done()
		wantNode(t, c, "/x", true)
		if f.Count() != 1 {
			t.Errorf("it happened %d times", f.Count())
		}
	})
}

func TestModesDropRequest(t *testing.T) {
	modes(t, func(t *testing.T, s setup) {
		c := s.dial(t)
		f := s.DropRequest(Match{Op: "create2", Times: 3})
		for range 3 {
			lostCreate(t, c, "/x")
		}
		<-f.Done()
		wantNode(t, c, "/x", false)
		mustCreate(t, c, "/x", zk.ModePersistent)
	})
}

func TestModesCutAfter(t *testing.T) {
	modes(t, func(t *testing.T, s setup) {
		c := s.dial(t)
		st := watch(t, c)
		f := s.CutAfter(Match{Op: "create2", Skip: 2})
		for _, path := range []string{"/a", "/b", "/c"} {
			mustCreate(t, c, path, zk.ModePersistent)
		}
		<-f.Done()
		st.await(t, zk.Disconnected)
		st.await(t, zk.Connected)
		wantNode(t, c, "/c", true)
	})
}

func TestModesWithoutEnd(t *testing.T) {
	modes(t, func(t *testing.T, s setup) {
		c := s.dial(t)
		f := s.DropReply(Match{Op: "create2", Times: -1})
		lostCreate(t, c, "/a")
		lostCreate(t, c, "/b")
		f.Stop()
		mustCreate(t, c, "/c", zk.ModePersistent)
		if f.Count() != 2 {
			t.Errorf("it happened %d times, want 2", f.Count())
		}
		select {
		case <-f.Done():
			t.Error("a fault without an end is done")
		default:
		}
	})
}

func TestModesExpire(t *testing.T) {
	modes(t, func(t *testing.T, s setup) {
		c := s.dial(t)
		other := s.srv.Dial(t)
		mustCreate(t, c, "/e", zk.ModeEphemeral)
		id, st := c.SessionID(), watch(t, c)
		must(t, s.ExpireClient(c))
		wantNode(t, other, "/e", false)
		st.await(t, zk.Expired)
		if ch, _ := st.await(t, zk.Connected); ch.SessionID == id {
			t.Error("the client has its old session again")
		}
		if err := s.ExpireSession(12345); err == nil {
			t.Error("a session that does not exist was expired")
		}
	})
}

// TestModesExpireDuringPartition expires the session of a client that cannot reach the server.
func TestModesExpireDuringPartition(t *testing.T) {
	modes(t, func(t *testing.T, s setup) {
		c := s.dial(t, session(time.Hour))
		mustCreate(t, c, "/e", zk.ModeEphemeral)
		s.Partition()
		must(t, s.ExpireClient(c))
		if n := s.srv.Server().Stats().Sessions; n != 0 {
			t.Errorf("%d sessions, want none", n)
		}
		s.Heal()
	})
}

func TestModesPartition(t *testing.T) {
	modes(t, func(t *testing.T, s setup) {
		c := s.dial(t, session(time.Second))
		mustCreate(t, c, "/e", zk.ModeEphemeral)
		st := watch(t, c)
		s.Partition()
		st.await(t, zk.Disconnected)
		s.Heal()
		st.await(t, zk.Connected)
		mustCreate(t, c, "/after", zk.ModePersistent)
	})
}

func TestModesPartitionOneWay(t *testing.T) {
	modes(t, func(t *testing.T, s setup) {
		c := s.dial(t, session(time.Hour))
		s.Partition(ToClient)
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error, 1)
		go func() { // ends with the create
			_, _, err := c.Create(ctx, "/x", nil, zk.OpenACL(), zk.ModePersistent)
			failed <- err
		}()
		// Another client, whose connection works, sees the znode.
		direct, err := zk.Dial(t.Context(), s.Servers(), &zk.Options{DialContext: s.srv.Server().DialContext})
		if err != nil {
			t.Fatal(err)
		}
		defer direct.Close()
		awaitNode(t, direct, "/x")
		cancel()
		if err := <-failed; err == nil {
			t.Error("an answer arrived")
		}
		s.Heal()
		mustCreate(t, c, "/y", zk.ModePersistent)
	})
}

// awaitNode waits until a znode exists.
func awaitNode(t *testing.T, c *zk.Client, path string) {
	t.Helper()
	came := make(chan struct{}, 10)
	stop := c.Listen(zk.Listener{Event: func(zk.Event) { came <- struct{}{} }})
	defer stop()
	found := make(chan zk.Result, 1)
	c.Go(zk.ExistsOp(path, true), func(r zk.Result) { found <- r })
	if r := <-found; errors.Is(r.Err, zk.ErrNoNode) {
		<-came
	} else if r.Err != nil {
		t.Fatal(r.Err)
	}
}

func TestModesRefuse(t *testing.T) {
	modes(t, func(t *testing.T, s setup) {
		c := s.dial(t)
		st := watch(t, c)
		s.Refuse(true)
		s.CutConnections()
		st.await(t, zk.Disconnected)
		if n := s.Connections(); n != 0 {
			t.Errorf("%d connections through a relay that refuses", n)
		}
		s.Refuse(false)
		st.await(t, zk.Connected)
	})
}

func TestModesHalfOpen(t *testing.T) {
	modes(t, func(t *testing.T, s setup) {
		c := s.dial(t, session(time.Second))
		st := watch(t, c)
		st.await(t, zk.Connected)
		s.HalfOpen()
		began := time.Now()
		if _, noticed := st.await(t, zk.Disconnected); noticed.Sub(began) < 100*time.Millisecond {
			t.Errorf("noticed after %v, want by silence", noticed.Sub(began))
		}
		st.await(t, zk.Connected)
		mustCreate(t, c, "/x", zk.ModePersistent)
	})
}

// TestModesLatency has a delay for one direction and one operation.
func TestModesLatency(t *testing.T) {
	const late = 50 * time.Millisecond
	modes(t, func(t *testing.T, s setup) {
		c := s.dial(t, session(time.Hour))
		s.Delay(late)
		began := time.Now()
		mustCreate(t, c, "/x", zk.ModePersistent)
		if d := time.Since(began); d < 2*late {
			t.Errorf("a request with %v each way took %v", late, d)
		}
		s.Delay(0)
		var events atomic.Int32
		s.DelayFunc(func(f Frame) time.Duration {
			if f.Op == "notification" && f.Path == "/x" {
				events.Add(1)
			}
			if f.Direction == ToClient && f.Op == "setData" && f.Path == "/x" && f.Size > 20 {
				return late
			}
			return 0
		})
		c.Go(zk.GetOp("/x", true), func(zk.Result) {})
		began = time.Now()
		if _, err := c.Set(t.Context(), "/x", nil, -1); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(began); d < late {
			t.Errorf("a reply that is %v late came after %v", late, d)
		}
		if n := events.Load(); n != 1 {
			t.Errorf("%d events passed, want 1", n)
		}
		s.DelayFunc(nil)
	})
}

func TestModesTrickle(t *testing.T) {
	modes(t, func(t *testing.T, s setup) {
		c := s.dial(t, session(time.Hour))
		s.Trickle(100 * time.Microsecond)
		began := time.Now()
		mustCreate(t, c, "/x", zk.ModePersistent)
		if d := time.Since(began); d < 10*time.Millisecond {
			t.Errorf("some 150 bytes at 100µs each took %v", d)
		}
	})
}
