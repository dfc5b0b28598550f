package zk_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// states returns a channel that receives a client's states.
func states(t *testing.T, c *zk.Client) <-chan zk.StateChange {
	ch := make(chan zk.StateChange, 1000)
	t.Cleanup(c.Listen(zk.Listener{State: func(s zk.StateChange) { ch <- s }}))
	return ch
}

// next receives a state, and fails unless it is the wanted one.
func next(t *testing.T, ch <-chan zk.StateChange, want zk.State) zk.StateChange {
	t.Helper()
	s := <-ch
	if s.State != want {
		t.Fatalf("%+v, want %v", s, want)
	}
	return s
}

func TestLostReplyAndLostRequestAreUnknown(t *testing.T) {
	for _, name := range []string{"reply", "request"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t)
				c := srv.Dial(t)
				if m := (zktest.Match{Op: "create2", Path: "/a"}); name == "reply" {
					srv.DropReply(m)
				} else {
					srv.DropRequest(m)
				}
				_, _, err := c.Create(t.Context(), "/a", nil, nil, zk.ModePersistent)
				if !errors.Is(err, zk.ErrConnectionLost) || zk.Applied(err) != zk.AppliedUnknown {
					t.Fatalf("%v, applied %v", err, zk.Applied(err))
				}
				_, found, err := c.Exists(t.Context(), "/a")
				if err != nil || found != (name == "reply") {
					t.Fatalf("%t %v", found, err)
				}
			})
		})
	}
}

// disconnections returns ways to disconnect a client from its server.
func disconnections() map[string]func(*zktest.Server) {
	return map[string]func(*zktest.Server){
		"cut":       func(s *zktest.Server) { s.CutConnections() },
		"half open": func(s *zktest.Server) { s.HalfOpen() },
		"blackHole hole": func(s *zktest.Server) {
			s.Blackhole(true)
			time.AfterFunc(9*time.Second, func() { s.Blackhole(false) })
		},
		"one way to the server": func(s *zktest.Server) {
			s.Block(zktest.ToServer, true)
			time.AfterFunc(9*time.Second, func() { s.Block(zktest.ToServer, false) })
		},
		"one way to the client": func(s *zktest.Server) {
			s.Block(zktest.ToClient, true)
			time.AfterFunc(9*time.Second, func() { s.Block(zktest.ToClient, false) })
		},
		"refused": func(s *zktest.Server) {
			s.Refuse(true)
			s.CutConnections()
			time.AfterFunc(2*time.Second, func() { s.Refuse(false) })
		},
	}
}

func TestSessionSurvivesFaultsShorterThanItsTimeout(t *testing.T) {
	for name, cut := range disconnections() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t)
				c := srv.Dial(t, func(o *zk.Options) { o.SessionTimeout = 12 * time.Second })
				_, _, err := c.Create(t.Context(), "/e", nil, nil, zk.ModeEphemeral)
				if err != nil {
					t.Fatal(err)
				}
				seen := states(t, c)
				id := next(t, seen, zk.Connected).SessionID
				start := time.Now()
				cut(srv)
				next(t, seen, zk.Disconnected)
				if d := time.Since(start); d > 8*time.Second {
					t.Fatalf("disconnected after %v, want two thirds of the timeout", d)
				}
				if s := next(t, seen, zk.Connected); s.SessionID != id || s.Conn != 2 {
					t.Fatalf("%+v", s)
				}
				stat, found, err := c.Exists(t.Context(), "/e")
				if err != nil || !found || stat.EphemeralOwner != id {
					t.Fatalf("%t %+v %v", found, stat, err)
				}
			})
		})
	}
}

func TestExpiryByServerStartsNewSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		c := srv.Dial(t)
		seen := states(t, c)
		id := next(t, seen, zk.Connected).SessionID
		_, _, watch, err := c.ExistsW(t.Context(), "/a")
		if err != nil {
			t.Fatal(err)
		}
		if err := srv.ExpireSession(id); err != nil {
			t.Fatal(err)
		}
		next(t, seen, zk.Disconnected)
		if s := next(t, seen, zk.Expired); s.SessionID != id || !errors.Is(s.Err, zk.ErrSessionExpired) {
			t.Fatalf("%+v", s)
		}
		if s := next(t, seen, zk.Connected); s.SessionID == id {
			t.Fatalf("%+v", s)
		}
		if e, open := <-watch; open {
			t.Fatalf("%+v", e)
		}
	})
}

func TestGoInRefusesOtherSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		c := srv.Dial(t)
		seen := states(t, c)
		former := next(t, seen, zk.Connected).SessionID
		if err := srv.ExpireSession(former); err != nil {
			t.Fatal(err)
		}
		next(t, seen, zk.Disconnected)
		ask := func(session int64, op zk.Op) error {
			answer := make(chan error, 1)
			c.GoIn(session, op, func(r zk.Result) { answer <- r.Err })
			return <-answer
		}
		refused := func(err error) {
			t.Helper()
			if !errors.Is(err, zk.ErrSessionExpired) || zk.Applied(err) != zk.AppliedNo {
				t.Errorf("%v, applied %v", err, zk.Applied(err))
			}
		}
		next(t, seen, zk.Expired)
		refused(ask(former, zk.CreateOp("/a", nil, nil, zk.ModePersistent)))
		present := next(t, seen, zk.Connected).SessionID
		refused(ask(former, zk.CreateOp("/a", nil, nil, zk.ModePersistent)))
		// This fails if the client sent one of the refused requests.
		if err := ask(present, zk.CreateOp("/a", nil, nil, zk.ModePersistent)); err != nil {
			t.Error(err)
		}
		if err := ask(0, zk.DeleteOp("/a", 0)); err != nil {
			t.Error(err)
		}
	})
}

func TestSessionAndWatchSurviveServerRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		c := srv.Dial(t)
		_, _, watch, err := c.ExistsW(t.Context(), "/a")
		if err != nil {
			t.Fatal(err)
		}
		id := c.SessionID()
		srv.Stop()
		time.Sleep(3 * time.Second) // in the bubble
		waits := make(chan error, 1)
		c.Go(zk.CreateOp("/a", nil, nil, zk.ModePersistent), func(r zk.Result) { waits <- r.Err })
		srv.Restart(t)
		if err := <-waits; err != nil {
			t.Fatal(err)
		}
		if e := <-watch; e.Type != zk.EventNodeCreated {
			t.Fatalf("%+v", e)
		}
		if c.SessionID() != id {
			t.Fatal("the session did not survive")
		}
	})
}

func TestRequestsSucceedOverSlowNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		srv.Trickle(time.Millisecond) // a byte a millisecond
		c := srv.Dial(t, func(o *zk.Options) { o.SessionTimeout = 30 * time.Second })
		_, _, err := c.Create(t.Context(), "/a", make([]byte, 500), nil, zk.ModePersistent)
		if err != nil {
			t.Fatal(err)
		}
		data, _, err := c.Get(t.Context(), "/a")
		if err != nil || len(data) != 500 {
			t.Fatalf("%d bytes, %v", len(data), err)
		}
	})
}

// outcomeTest sends requests from several goroutines while connections are cut and sessions expire,
// and records the reported outcomes.
type outcomeTest struct {
	t   *testing.T
	srv *zktest.Server
	c   *zk.Client

	mu       sync.Mutex
	reported map[string]zk.Outcome
	calls    int
}

func (s *outcomeTest) worker(id int, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, uint64(id)))
	for i := range 60 {
		path := fmt.Sprintf("/n-%d-%d", id, i)
		ctx, cancel := context.WithTimeout(s.t.Context(), time.Duration(rnd.IntN(3000))*time.Millisecond)
		_, _, err := s.c.Create(ctx, path, nil, nil, zk.ModePersistent)
		cancel()
		s.mu.Lock()
		s.reported[path] = zk.Applied(err)
		s.calls++
		s.mu.Unlock()
		time.Sleep(time.Duration(rnd.IntN(200)) * time.Millisecond) // in the bubble
	}
}

func (s *outcomeTest) faults(seed uint64, end <-chan struct{}) {
	rnd := rand.New(rand.NewPCG(seed, 99))
	for {
		select {
		case <-end:
			return
		case <-time.After(time.Duration(rnd.IntN(500)) * time.Millisecond):
		}
		switch rnd.IntN(5) {
		case 0:
			s.srv.CutConnections()
		case 1:
			s.srv.DropReply(zktest.Match{Op: "create2"})
		case 2:
			s.srv.DropRequest(zktest.Match{Op: "create2", Skip: rnd.IntN(3)})
		case 3:
			s.srv.Refuse(true)
			s.srv.CutConnections()
			time.Sleep(time.Duration(rnd.IntN(500)) * time.Millisecond) // in the bubble
			s.srv.Refuse(false)
		case 4:
			// The session may have ended already.
			_ = s.srv.ExpireSession(s.c.SessionID())
		}
	}
}

// TestReportedOutcomesAreCorrect checks that a request with AppliedNo was not applied, and that a
// request without an error was applied.
func TestReportedOutcomesAreCorrect(t *testing.T) {
	unknown := 0
	for seed := range uint64(10) {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Start(t)
			s := &outcomeTest{t: t, srv: srv, c: srv.Dial(t), reported: make(map[string]zk.Outcome)}
			end := make(chan struct{})
			var faults, workers sync.WaitGroup
			faults.Go(func() { s.faults(seed, end) })
			for id := range 5 {
				workers.Go(func() { s.worker(id, seed) })
			}
			workers.Wait()
			close(end)
			faults.Wait()
			time.Sleep(time.Minute) // in the bubble: requests in flight arrive
			kids, _, err := srv.Dial(t).Children(t.Context(), "/")
			if err != nil {
				t.Fatal(err)
			}
			there := make(map[string]bool)
			for _, k := range kids {
				there["/"+k] = true
			}
			for path, o := range s.reported {
				if o == zk.AppliedUnknown {
					unknown++
				} else if there[path] != (o == zk.AppliedYes) {
					t.Errorf("seed %d: %s was applied: %t, but reported: %v", seed, path, there[path], o)
				}
			}
			if s.calls != 300 || len(there) < 30 {
				t.Fatalf("seed %d tests too little: %d calls, %d znodes", seed, s.calls, len(there))
			}
		})
	}
	if unknown == 0 {
		t.Fatal("no request has an unknown outcome")
	}
}

func TestCloseAtAnyMoment(t *testing.T) {
	for seed := range uint64(30) {
		synctest.Test(t, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 5))
			srv := zktest.Start(t)
			srv.Delay(time.Duration(rnd.IntN(10)) * time.Millisecond)
			c := srv.Dial(t)
			var all sync.WaitGroup
			for i := range 20 {
				all.Add(1)
				c.Go(zk.CreateOp(fmt.Sprintf("/n%d", i), nil, nil, zk.ModeEphemeral), func(r zk.Result) {
					defer all.Done()
					if r.Err != nil && zk.Applied(r.Err) == zk.AppliedYes {
						t.Errorf("%v", r.Err)
					}
				})
			}
			time.Sleep(time.Duration(rnd.IntN(50)) * time.Millisecond) // in the bubble
			if rnd.IntN(2) == 0 {
				srv.CutConnections()
			}
			for range 2 {
				all.Go(func() {
					if err := c.Close(); err != nil && !errors.Is(err, zk.ErrNotConfirmed) {
						t.Error(err)
					}
				})
			}
			all.Wait()
			if c.State() != zk.Closed {
				t.Fatalf("state %v", c.State())
			}
		})
	}
}

func TestManyWatchesSurviveReconnecting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		c := srv.Dial(t)
		const n = 3000 // names of 100 bytes: several frames
		fired := make(chan string, n)
		t.Cleanup(c.Listen(zk.Listener{Event: func(e zk.Event) { fired <- e.Path }}))
		path := func(i int) string { return fmt.Sprintf("/%0100d", i) }
		for i := range n {
			c.Go(zk.ExistsOp(path(i), true), nil)
		}
		if err := c.Sync(t.Context(), "/"); err != nil {
			t.Fatal(err)
		}
		// The creates wait for the next connection, after the watches.
		var once sync.Once
		t.Cleanup(c.Listen(zk.Listener{State: func(s zk.StateChange) {
			if s.State != zk.Disconnected {
				return
			}
			once.Do(func() {
				for i := range n {
					c.Go(zk.CreateOp(path(i), nil, nil, zk.ModePersistent), nil)
				}
			})
		}}))
		synctest.Wait()
		srv.CutConnections()
		seen := make(map[string]bool)
		for range n {
			select {
			case p := <-fired:
				seen[p] = true
			case <-time.After(time.Minute): // in the bubble
				t.Fatalf("%d of %d events", len(seen), n)
			}
		}
		if len(seen) != n {
			t.Fatalf("%d of %d events", len(seen), n)
		}
	})
}
