package zktest

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/internal/wire"
	"github.com/zklock/zklock/zk"
)

func TestDropReplyHasAppliedTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := Start(t)
		c, other := srv.Dial(t), srv.Dial(t)
		f := srv.DropReply(Match{Op: "create2", Path: "/x", Skip: 1})
		mustCreate(t, c, "/x1", zk.ModePersistent)
		mustCreate(t, c, "/y", zk.ModePersistent)
		_, _, err := c.Create(t.Context(), "/x2", nil, zk.OpenACL(), zk.ModePersistent)
		if !errors.Is(err, zk.ErrConnectionLost) {
			t.Fatalf("the create whose reply was lost said %v", err)
		}
		<-f.Done()
		wantNode(t, other, "/x2", true)
		mustCreate(t, c, "/x3", zk.ModePersistent) // the fault happens once
	})
}

func TestDropRequestHasNotAppliedIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := Start(t)
		c, other := srv.Dial(t), srv.Dial(t)
		f := srv.DropRequest(Match{Op: "multi", Path: "/m"})
		if _, err := c.Multi(t.Context(), zk.CreateOp("/m", nil, zk.OpenACL(), zk.ModePersistent)); !errors.Is(err, zk.ErrConnectionLost) {
			t.Fatalf("the multi that was lost said %v", err)
		}
		<-f.Done()
		wantNode(t, other, "/m", false)
	})
}

// TestMatchOfDeleteMatchesEveryRelease drops the reply to a release. The release of a hold that had
// waited is a multi.
func TestMatchOfDeleteMatchesEveryRelease(t *testing.T) {
	for _, path := range []string{"", "/zklock/job/"} {
		synctest.Test(t, func(t *testing.T) {
			srv := Start(t)
			acquired := make(chan *zklock.Hold, 2)
			for range 2 {
				locks, err := zklock.Dial(t.Context(), srv.Servers(), &zklock.Options{DialContext: srv.DialContext})
				if err != nil {
					t.Fatal(err)
				}
				defer locks.Close()
				go func() { // ends when the lock is acquired
					hold, err := locks.Mutex("job").Acquire(t.Context())
					if err != nil {
						t.Error(err)
					}
					acquired <- hold
				}()
				synctest.Wait()
			}
			for _, state := range []string{"that did not wait", "that waited"} {
				hold := <-acquired
				other := srv.DropReply(Match{Op: "delete", Path: "/zklock/other/"})
				f := srv.DropReply(Match{Op: "delete", Path: path})
				if err := hold.Release(t.Context()); err != nil {
					t.Error(err)
				}
				if f.Count() != 1 || other.Count() != 0 {
					t.Errorf("path %q: %d replies to the release of a hold %s were dropped, and %d of another lock, want 1 and 0", path, f.Count(), state, other.Count())
				}
				f.Stop()
				other.Stop()
			}
		})
	}
}

func TestStoppedFaultDoesNotHappen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := Start(t)
		c := srv.Dial(t)
		f := srv.DropReply(Match{})
		f.Stop()
		mustCreate(t, c, "/x", zk.ModePersistent)
		select {
		case <-f.Done():
			t.Error("a stopped fault happened")
		default:
		}
	})
}

func TestDropReplyToConnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := Start(t)
		f := srv.DropReply(Match{Op: "connect"})
		c := srv.Dial(t)
		<-f.Done()
		mustCreate(t, c, "/x", zk.ModePersistent)
		// The session whose ID did not arrive ends with its timeout.
		if n := srv.Server().Stats().Sessions; n != 2 {
			t.Errorf("%d sessions, want 2", n)
		}
	})
}

func TestCutConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := Start(t)
		c := srv.Dial(t)
		id, s := c.SessionID(), watch(t, c)
		mustCreate(t, c, "/e", zk.ModeEphemeral)
		srv.CutConnections()
		s.await(t, zk.Disconnected)
		if ch, _ := s.await(t, zk.Connected); ch.SessionID != id {
			t.Errorf("session %#x after the cut, want %#x", ch.SessionID, id)
		}
		wantNode(t, c, "/e", true)
	})
}

func TestBlackholeEndsASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := Start(t)
		c := srv.Dial(t, session(4*time.Second))
		mustCreate(t, c, "/e", zk.ModeEphemeral)
		s := watch(t, c)
		srv.Blackhole(true)
		began := time.Now()
		_, lost := s.await(t, zk.Disconnected)
		if d := lost.Sub(began); d > 4*time.Second {
			t.Errorf("the client noticed after %v, want within its timeout", d)
		}
		time.Sleep(time.Until(began.Add(4100 * time.Millisecond)))
		if n := srv.Server().Stats().Sessions; n != 0 {
			t.Errorf("%d sessions after timeout + 100 ms, want 0", n)
		}
		srv.Blackhole(false)
		wantNode(t, srv.Dial(t), "/e", false)
	})
}

func TestShortBlackholeOnlyDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := Start(t)
		c := srv.Dial(t, session(20*time.Second))
		srv.Blackhole(true)
		began := time.Now()
		time.AfterFunc(2*time.Second, func() { srv.Blackhole(false) })
		mustCreate(t, c, "/x", zk.ModePersistent)
		if d := time.Since(began); d != 2*time.Second {
			t.Errorf("answered after %v, want 2s", d)
		}
	})
}

func TestBlockOneWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := Start(t)
		c := srv.Dial(t, session(20*time.Second))
		other := srv.Server()
		before := other.Stats().Nodes
		srv.Block(ToClient, true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, _, err := c.Create(ctx, "/x", nil, zk.OpenACL(), zk.ModePersistent); err == nil {
			t.Error("an answer came through")
		}
		if n := other.Stats().Nodes; n != before+1 {
			t.Errorf("the request did not arrive: %d nodes after %d", n, before)
		}
		srv.Block(ToClient, false)
	})
}

func TestDelayAndTrickle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := Start(t)
		c := srv.Dial(t, session(time.Hour))
		srv.Delay(50 * time.Millisecond)
		began := time.Now()
		mustCreate(t, c, "/x", zk.ModePersistent)
		if d := time.Since(began); d != 100*time.Millisecond {
			t.Errorf("a request with 50ms each way took %v", d)
		}
		// Concurrent requests take no longer than one.
		began = time.Now()
		done := make(chan error, 100)
		for range 100 {
			c.Go(zk.ExistsOp("/x", false), func(r zk.Result) { done <- r.Err })
		}
		for range 100 {
			must(t, <-done)
		}
		if d := time.Since(began); d != 100*time.Millisecond {
			t.Errorf("100 pipelined requests took %v", d)
		}
		srv.Delay(0)
		srv.Trickle(time.Millisecond)
		began = time.Now()
		wantNode(t, c, "/x", true)
		if d := time.Since(began); d < 100*time.Millisecond || d > 200*time.Millisecond {
			t.Errorf("some 130 bytes at 1ms each took %v", d)
		}
	})
}

func TestProxyRefusesBadTarget(t *testing.T) {
	for _, target := range [][2]string{{"", "127.0.0.1:2181"}, {"udp", "127.0.0.1:2181"}, {"tcp", ""}, {"tcp", "127.0.0.1"}, {"tcp", "127.0.0.1:"}, {"tcp", "127.0.0.1:99999"}, {"unix", ""}, {"tcp", Start(t).Servers()}} {
		if failure(t, func(tb testing.TB) { NewProxy(tb, target[0], target[1]) }) == "" {
			t.Errorf("NewProxy accepted %q", target)
		}
	}
}

// TestOtherProtocolsPassUnchanged checks that a relay passes bytes that are not ZooKeeper's
// protocol.
func TestOtherProtocolsPassUnchanged(t *testing.T) {
	srv := Start(t)
	nc, err := net.Dial("tcp", srv.ListenTCP(t))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if _, err := nc.Write([]byte("ruok")); err != nil {
		t.Fatal(err)
	}
	if answer, err := io.ReadAll(nc); string(answer) != "imok" {
		t.Errorf("ruok was answered %q, %v", answer, err)
	}
}

// proxyTo returns a proxy for a server that serves one connection.
func proxyTo(t *testing.T, serve func(net.Conn)) *Proxy {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() { // ends with the connection, or with the listener
		if c, err := ln.Accept(); err == nil {
			serve(c)
			c.Close()
		}
	}()
	return NewProxy(t, "tcp", ln.Addr().String())
}

// dialProxy returns a connection to a proxy that lasts for at most a minute.
func dialProxy(t *testing.T, p *Proxy) net.Conn {
	t.Helper()
	nc, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	must(t, nc.SetDeadline(time.Now().Add(time.Minute)))
	return nc
}

// TestTLSPassesUnchanged checks that a relay, after bytes that are not ZooKeeper's protocol, takes no
// later bytes for the length of a frame, as ciphertext can look like one.
func TestTLSPassesUnchanged(t *testing.T) {
	p := proxyTo(t, func(c net.Conn) { io.Copy(c, c) })
	nc := dialProxy(t, p)
	for _, chunk := range []string{"\x16\x03\x01\x00\x05hello", "\x00\x01\x00\x00more", "\x00\x00\x00\x02ab"} {
		if _, err := io.WriteString(nc, chunk); err != nil {
			t.Fatal(err)
		}
		echo := make([]byte, len(chunk))
		if n, err := io.ReadFull(nc, echo); string(echo) != chunk {
			t.Fatalf("%q came back as %q: %v", chunk, echo[:n], err)
		}
	}
}

// TestLongFramePasses checks that a relay passes a frame that is too long to be read, whatever is in
// it, and reads the frames after it.
func TestLongFramePasses(t *testing.T) {
	p := proxyTo(t, func(c net.Conn) { io.Copy(io.Discard, c) })
	ops := make(chan string, 1000)
	p.DelayFunc(func(f Frame) time.Duration {
		if f.Op != "" {
			select {
			case ops <- f.Op:
			default: // the test has failed
			}
		}
		return 0
	})
	nc := dialProxy(t, p)
	long := make([]byte, 4+maxFrame+1) // its bytes look like lengths
	binary.BigEndian.PutUint32(long, maxFrame+1)
	for i := range len(long)/4 - 1 {
		long[4*i+7] = 12
	}
	b := wire.AppendRecord(nil, &wire.ConnectRequest{Password: make([]byte, 16)})
	b = append(b, long...)
	b = wire.AppendRequest(b, 1, wire.OpExists, &wire.ExistsRequest{Path: "/a"})
	if _, err := nc.Write(b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"connect", "exists"} {
		if op := <-ops; op != want {
			t.Errorf("a frame of %s, want %s", op, want)
		}
	}
}

// TestManyRequestsInFlight checks that the time for a reply does not depend on the number of
// requests in flight. If it did, the replies would take minutes.
func TestManyRequestsInFlight(t *testing.T) {
	const requests = 100_000
	l := &link{relay: new(Relay)}
	for xid := range int32(requests) {
		l.inspectRequest(xid, Frame{Op: "exists"}, nil)
	}
	began := time.Now()
	for xid := range int32(requests) {
		if got := l.inspectReply(xid, Frame{}, nil); got.frame.Op != "exists" {
			t.Fatalf("reply %d belongs to %+v", xid, got.frame)
		}
		if time.Since(began) > 20*time.Second {
			t.Fatalf("%d of %d replies took %v", xid, requests, time.Since(began))
		}
	}
	if len(l.pending) != 0 {
		t.Errorf("%d requests are left", len(l.pending))
	}
}
