package locktest_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zktest"
)

// TestGrantWithoutCheckingSession reproduces etcd-io/etcd#9921 and, for its read-write lock,
// #16221: the predecessor is gone, and the waiter assumes the grant without checking its own
// entry. Its session ended in a partition, and another client holds the lock.
func TestGrantWithoutCheckingSession(t *testing.T) {
	regress(t, func(s *bubble, r recipe) error {
		holder, p := s.blocker(), s.add(r)
		a := s.begin(s.Context(), p)
		next := s.add(mutex)
		b := s.begin(s.Context(), next)
		p.route.Partition()
		s.remove(holder) // the event is in flight until the partition ends
		advance(2 * timeout)
		if n := s.srv.Server().Stats().SessionsExpired; n != 1 || !next.held() {
			s.Fatalf("%d sessions expired; the next one: %v", n, granted(b))
		}
		p.route.Heal()
		advance(timeout)
		if a.over.Load() && a.err == nil && next.held() {
			return fmt.Errorf("two hold; there are %q", s.entries(dir))
		}
		return s.within(next.release)
	}, mutex, flawed("etcd's lock service", trustsTheEvent).withError("two hold"))
}

// TestWaiterIgnoresItsOwnExpiry reproduces etcd-io/etcd#19597, also in Jepsen's report on etcd
// 3.4.3: the session of a waiter ends, and it continues to wait for its predecessor without an
// entry in the queue.
func TestWaiterIgnoresItsOwnExpiry(t *testing.T) {
	regress(t, func(s *bubble, r recipe) error {
		holder, p := s.blocker(), s.add(r)
		a := s.begin(s.Context(), p)
		for _, name := range s.entries(dir) {
			if dir+"/"+name == holder {
				continue
			}
			if err := s.srv.ExpireSession(s.owner(name)); err != nil {
				s.Fatal(err)
			}
		}
		advance(2 * timeout)
		if names := s.entries(dir); len(names) == 1 && !a.over.Load() {
			return fmt.Errorf("it waits without an entry; there is only %q", names)
		}
		s.remove(holder)
		advance(time.Second)
		return granted(a)
	}, mutex, flawed("etcd 3.6", waitsAfterExpiry).withError("it waits without an entry"))
}

// TestSwappedSession reproduces ClickHouse/ClickHouse#116690, which was reported for Java's
// client and kazoo; go-zookeeper 1.0.4 has it too. On a reconnect, the server answers with
// another session instead of reporting that the old one expired. The client continues as if its
// entries existed.
func TestSwappedSession(t *testing.T) {
	swapped := func(name string, dial func(*bubble, dialer) contender) recipe {
		return recipe{name: name, make: func(s *bubble, via *zktest.Route) contender {
			sw := &swapper{dial: via.DialContext}
			s.Cleanup(func() {
				if sw.swaps.Load() == 0 {
					s.Error("no session was swapped")
				}
			})
			return dial(s, sw.dialContext)
		}}
	}
	regress(t, func(s *bubble, r recipe) error {
		p := s.add(r)
		if err := s.within(p.acquire); err != nil {
			s.Fatal(err)
		}
		p.route.CutConnections()
		advance(timeout / 2)
		if p.route.Connections() != 1 {
			s.Fatal("the client has not reconnected")
		}
		advance(timeout) // the old session ends
		other := s.add(mutex)
		if err := s.within(other.acquire); err != nil {
			s.Fatal(err)
		}
		if p.held() {
			return fmt.Errorf("two hold; there are %q", s.entries(dir))
		}
		return s.within(other.release)
	}, swapped("zklock", func(s *bubble, d dialer) contender {
		return &zklockContender{lock: dialZklock(s, d).Mutex(dir)}
	}), swapped("go-zookeeper", func(s *bubble, d dialer) contender {
		return dialGozk(s, d)
	}).withError("two hold"))
}

// A swapper opens connections. All except the first request a new session, as if the server
// could not resume one.
type swapper struct {
	dial  dialer
	dials atomic.Int64
	swaps atomic.Int64
}

func (s *swapper) dialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := s.dial(ctx, network, addr)
	if err != nil || s.dials.Add(1) == 1 {
		return c, err
	}
	return &swappedConn{Conn: c, swapper: s}, nil
}

// swappedConn changes the first written frame.
type swappedConn struct {
	net.Conn
	swapper *swapper
	written bool
}

// Write sets the session in the handshake to 0. It follows the length, the protocol version, the
// last zxid, and the timeout.
func (c *swappedConn) Write(b []byte) (int, error) {
	const at = 4 + 4 + 8 + 4
	if !c.written && len(b) >= at+8 {
		b = append([]byte(nil), b...)
		if binary.BigEndian.Uint64(b[at:]) != 0 {
			c.swapper.swaps.Add(1)
		}
		binary.BigEndian.PutUint64(b[at:], 0)
	}
	c.written = true
	return c.Conn.Write(b)
}

// TestSwappedSessionEndsHold checks that the hold of the old session reports its loss at the
// reconnect, before its deadline.
func TestSwappedSessionEndsHold(t *testing.T) {
	runSchedule(t, "zklock", func(s *bubble) {
		route := s.srv.Route(s.T)
		sw := &swapper{dial: route.DialContext}
		h, err := dialZklock(s, sw.dialContext).Mutex(dir).Acquire(s.Context())
		if err != nil {
			s.Fatal(err)
		}
		route.CutConnections()
		cut := time.Now()
		select {
		case <-h.Done():
		case <-time.After(patience):
		}
		if took := time.Since(cut); took > timeout/4 || sw.swaps.Load() == 0 {
			s.Errorf("lost after %v; %d sessions swapped", took, sw.swaps.Load())
		}
		if err := h.Err(); !errors.Is(err, zklock.ErrLost) {
			s.Error(err)
		}
	})
}
