package zkserver

import (
	"bytes"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// TestPiecesKeepOrder checks that output leaves in the order in which it was added. The pieces
// do not copy long frames, and do not write to a frame that connections share.
func TestPiecesKeepOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	shared := bytes.Repeat([]byte("s"), 2*keepBuffer)
	for range 100 {
		var p pieces
		var want, got []byte
		for range 50 {
			b := shared[:keepBuffer+1]
			if r.IntN(3) > 0 {
				b = bytes.Repeat([]byte{byte('a' + r.IntN(26))}, r.IntN(40_000))
			}
			p.add(b)
			want = append(want, b...)
			if r.IntN(4) > 0 {
				continue
			}
			b = p.next()
			n := r.IntN(len(b) + 1) // how much a socket accepts
			got = append(got, b[:n]...)
			p.wrote(n)
			if r.IntN(8) == 0 {
				var q pieces
				q.addAll(p)
				p = q
			}
		}
		for p.len() > 0 {
			got = append(got, p.take(nil)...)
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("%d bytes, want %d, or in another order", len(got), len(want))
		}
	}
	if bytes.ContainsFunc(shared, func(c rune) bool { return c != 's' }) {
		t.Error("a shared frame was changed")
	}
	var p pieces
	p.add([]byte("x"))
	p.add(shared)
	if p.take(nil); &p.take(nil)[0] != &shared[0] {
		t.Error("a long frame was copied")
	}
	p.add(make([]byte, 2*keepBuffer, 8*keepBuffer))
	p.add(shared)
	if n := p.memory(); n != 10*keepBuffer {
		t.Errorf("%d bytes of memory, want %d", n, 10*keepBuffer)
	}
	p.next()
	if p.wrote(keepBuffer + 1); p.memory() > 4*keepBuffer || p.len() != 3*keepBuffer-1 {
		t.Errorf("%d bytes of memory for the last %d bytes", p.memory(), p.len())
	}
}

// TestLongAnswersComeInOrder: connections request many long answers between other requests. Each
// gets all of them in order, although other connections do not read theirs, or end.
func TestLongAnswersComeInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, testOptions(t))
		writer := login(t, s, time.Hour)
		const size, n = longAnswer + 1, 20
		create := &wire.CreateRequest{Path: "/long", Data: make([]byte, size), ACL: openACL()}
		writer.do(wire.OpCreate, create)
		var clients []*rawClient
		first := int32(0)
		for range 10 {
			c := login(t, s, time.Hour)
			clients = append(clients, c)
			c.do(wire.OpAddWatch, &wire.AddWatchRequest{Path: "/other", Mode: wire.AddWatchPersistent})
			first = c.xid + 1
			go func() {
				for range n {
					c.send(wire.OpGetData, &wire.GetDataRequest{Path: "/long"})
					c.send(wire.OpExists, &wire.ExistsRequest{Path: "/long"})
				}
			}()
		}
		for range 3 {
			nonReader := login(t, s, time.Hour)
			go func() { // ends with the connection
				for range n {
					nonReader.send(wire.OpGetData, &wire.GetDataRequest{Path: "/long"})
				}
			}()
		}
		closed := login(t, s, time.Hour)
		closed.send(wire.OpGetData, &wire.GetDataRequest{Path: "/long"})
		closed.nc.Close()
		writer.create("/other", wire.ModePersistent)
		for i, c := range clients {
			for k := range 2 * n {
				h, body, err := c.next()
				if err != nil || h.Xid != first+int32(k) || k%2 == 0 != (body.Remaining() > size) {
					t.Fatalf("client %d, answer %d: %+v, %v", i, k, h, err)
				}
			}
			if len(c.events) != 1 {
				t.Errorf("client %d: events %v, want 1", i, c.events)
			}
		}
		s.runOnLoop(func() {
			if b := s.loop.buffers; len(b.waiting) > 0 || b.allocating {
				t.Errorf("%+v at the end", b)
			}
		})
	})
}

// TestLongAnswersOfChargedConnectionsComeLast: a connection that requests one long answer does
// not wait for all connections that recently had long answers.
func TestLongAnswersOfChargedConnectionsComeLast(t *testing.T) {
	s := &Server{}
	s.loop.charges = make(map[account]time.Duration)
	var conns []*conn
	var waiting []bufferRequest
	for _, addr := range []string{"192.0.2.1", "192.0.2.1", "192.0.2.2", "192.0.2.1", "192.0.2.2"} {
		c := &conn{peer: peer{tcp: netip.AddrPortFrom(netip.MustParseAddr(addr), 1)}, limited: true}
		conns, waiting = append(conns, c), append(waiting, bufferRequest{c, len(waiting)})
	}
	for _, c := range conns[:2] {
		s.charge(c, turn{size: longAnswer}, time.Second)
	}
	var got []int
	for ; len(waiting) > 0; waiting = waiting[1:] {
		s.firstUncharged(waiting)
		got = append(got, waiting[0].size)
	}
	if want := []int{2, 4, 3, 0, 1}; !slices.Equal(got, want) {
		t.Errorf("order %v, want %v", got, want)
	}
}

// TestConnectionWithBufferComesFirst: while a connection has an unused buffer, the other
// connections wait for theirs.
func TestConnectionWithBufferComesFirst(t *testing.T) {
	for _, runnable := range []bool{false, true} {
		s := &Server{allocated: make(chan []byte, 1)}
		c := &conn{exchange: new(exchange)}
		s.requeue(new(conn), new(conn))
		if runnable { // because of its input
			s.requeue(c)
		}
		s.awaitBuffer(c, 1)
		s.provideBuffer()
		s.handlers.Wait()
		s.provideBuffer()
		list := s.loop.runnable
		if c.buffer == nil || len(list) != 3 || list[0] != c || list[1] == list[2] || list[2] == c {
			t.Errorf("runnable %v: the connection with the buffer is at %d", runnable, slices.Index(list, c))
		}
	}
}
