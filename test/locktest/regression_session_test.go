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

// TestGrantWithoutLookingAtTheSession is etcd-io/etcd#9921 and, of its read-write
// lock, #16221: the node ahead is gone, and the waiter takes the lock without a
// look at its own. Its session ended in a partition, and another holds the lock.
func TestGrantWithoutLookingAtTheSession(t *testing.T) {
	regress(t, func(s *scene, r recipe) error {
		holder, p := s.blocker(), s.enter(r)
		a := s.begin(s.Context(), p)
		next := s.enter(mutex)
		b := s.begin(s.Context(), next)
		p.route.Partition()
		s.remove(holder) // the event is under way until the partition heals
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
	}, mutex, flawed("etcd's lock service", trustsTheEvent).showing("two hold"))
}

// TestWaiterIgnoresItsOwnExpiry is etcd-io/etcd#19597, in Jepsen's report on etcd 3.4.3
// before that: the session of a waiter ends, and it keeps waiting for the node
// ahead, without a place in the queue.
func TestWaiterIgnoresItsOwnExpiry(t *testing.T) {
	regress(t, func(s *scene, r recipe) error {
		holder, p := s.blocker(), s.enter(r)
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
			return fmt.Errorf("it waits, and only %q is there", names)
		}
		s.remove(holder)
		advance(time.Second)
		return granted(a)
	}, mutex, flawed("etcd 3.6", waitsAfterExpiry).showing("it waits, and only"))
}

// TestSwappedSession is ClickHouse/ClickHouse#116690, reported of Java's client and
// kazoo; go-zookeeper 1.0.4 has it too: on a reconnect, the server answers with
// another session instead of reporting the old one expired, and the client continues as
// if it had the old one's entries.
func TestSwappedSession(t *testing.T) {
	swapped := func(name string, dial func(*scene, dialer) contender) recipe {
		return recipe{name: name, make: func(s *scene, via *zktest.Route) contender {
			sw := &swapper{dial: via.DialContext}
			s.Cleanup(func() {
				if sw.swaps.Load() == 0 {
					s.Error("no session was swapped")
				}
			})
			return dial(s, sw.dialContext)
		}}
	}
	regress(t, func(s *scene, r recipe) error {
		p := s.enter(r)
		if err := s.within(p.acquire); err != nil {
			s.Fatal(err)
		}
		p.route.CutConnections()
		advance(timeout / 2)
		if p.route.Connections() != 1 {
			s.Fatal("it has not come back")
		}
		advance(timeout) // the old session ends
		other := s.enter(mutex)
		if err := s.within(other.acquire); err != nil {
			s.Fatal(err)
		}
		if p.held() {
			return fmt.Errorf("two hold; there are %q", s.entries(dir))
		}
		return s.within(other.release)
	}, swapped("zklock", func(s *scene, d dialer) contender {
		return &zklockContender{lock: dialZklock(s, d).Mutex(dir)}
	}), swapped("go-zookeeper", func(s *scene, d dialer) contender {
		return dialGozk(s, d)
	}).showing("two hold"))
}

// A swapper makes connections of which all but the first ask for a new session,
// as if the server had no notion of resuming one.
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

// swappedConn changes the first frame that is written.
type swappedConn struct {
	net.Conn
	swapper *swapper
	written bool
}

// Write puts session 0 in the handshake: after the length come the protocol version,
// the last zxid, and the timeout.
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

// TestSwappedSessionIsTold: the hold of the old session says at the reconnect that it
// is lost, and does not wait for its deadline.
func TestSwappedSessionIsTold(t *testing.T) {
	runSchedule(t, "zklock", func(s *scene) {
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
			s.Errorf("told after %v; %d sessions swapped", took, sw.swaps.Load())
		}
		if err := h.Err(); !errors.Is(err, zklock.ErrLost) {
			s.Error(err)
		}
	})
}
