package zkserver

import (
	"bufio"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// TestNonReadingClientIsThrottled: a client does not read. The server keeps replies for any
// time, in bounded memory.
func TestNonReadingClientIsThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := testOptions(t)
		opts.MaxOutstanding = 50
		s := start(t, opts)
		c := login(t, s, time.Hour)
		const size, n = 100_000, 400
		c.do(wire.OpCreate, &wire.CreateRequest{Path: "/big", Data: make([]byte, size), ACL: openACL()})
		go func() {
			for range n {
				c.send(wire.OpGetData, &wire.GetDataRequest{Path: "/big"})
			}
		}()
		synctest.Wait() // until the server is throttled
		held := 0
		s.runOnLoop(func() {
			for _, x := range s.loop.conns {
				held += x.out.len() + x.writing + len(x.in.buf)
			}
		})
		if most := maxPending + inboxBytes + 2*size; held > most {
			t.Errorf("%d bytes are held for a client that does not read, want at most %d", held, most)
		}
		login(t, s, time.Hour).create("/other", wire.ModePersistent) // other clients are served
		for i := range n {
			if _, _, err := c.next(); err != nil {
				t.Fatalf("reply %d of %d: %v", i, n, err)
			}
		}
	})
}

func TestUnreadEventsCloseConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := testOptions(t)
		opts.MaxUnread = 100 << 10
		var log strings.Builder
		opts.Logger = logTo(&log)
		s := start(t, opts)
		nonReader, busy := login(t, s, time.Hour), login(t, s, time.Hour)
		nonReader.do(wire.OpAddWatch, &wire.AddWatchRequest{Path: "/", Mode: 1})
		for range 10_000 {
			busy.create("/some-rather-long-name-", wire.ModePersistentSequential)
		}
		nonReader.wantClosed()
		if again := resume(t, s, nonReader); again.session.SessionID != nonReader.session.SessionID {
			t.Error("the session ended with its connection")
		}
		s.Close()
		if !strings.Contains(log.String(), errTooSlow.Error()) {
			t.Errorf("the log does not name the cause: %s", log.String())
		}
	})
}

// TestMaxUnreadTotalClosesSlowest: many clients do not read, each of them within its own limit.
func TestMaxUnreadTotalClosesSlowest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := testOptions(t)
		opts.MaxUnreadTotal = 2 << 20
		opts.Logger = discard()
		s := start(t, opts)
		good := login(t, s, time.Hour)
		good.do(wire.OpCreate, &wire.CreateRequest{Path: "/big", Data: make([]byte, 300_000), ACL: openACL()})
		const n = 30
		for range n {
			nonReader := login(t, s, time.Hour)
			nonReader.send(wire.OpGetData, &wire.GetDataRequest{Path: "/big"})
			synctest.Wait()
			held := 0
			s.runOnLoop(func() {
				for _, c := range s.loop.conns {
					held += c.unread()
				}
			})
			if held > 2<<20 {
				t.Fatalf("%d bytes are kept for clients that do not read", held)
			}
		}
		st := s.Stats()
		if cut := st.ConnectionsCut.SlowReaders; cut < n/2 || st.Connections != n+1-int(cut) {
			t.Errorf("%d were cut and %d connections are left of %d", cut, st.Connections, n+1)
		}
		good.create("/fine", wire.ModePersistent)
	})
}

// TestBusyConnectionsYield: connections always have input or room for output, as with a fast
// client over TLS. They must let other goroutines run, however many connections there are. So
// must handshakes.
func TestBusyConnectionsYield(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const reads, writes, handshakeReads, readers = 80_000, 100, 1000, 100
	s := &Server{yields: make(chan struct{}, 1)}
	read := func(n int) {
		c := newConn(s, 0, &busyConn{reads: n}, peer{}, false)
		got, err := io.Copy(io.Discard, bufio.NewReaderSize(c.blockingIO, 16))
		if int(got) != n || err != nil {
			t.Errorf("read %d bytes, want %d, error %v", got, n, err)
		}
	}
	for name, run := range map[string]struct {
		yields int
		do     func()
	}{
		"reader": {reads / readsPerTurn, func() { read(reads) }},
		"readers": {reads / readsPerTurn, func() {
			var all sync.WaitGroup
			for range readers {
				all.Go(func() { read(reads / readers) })
			}
			all.Wait()
		}},
		"handshake": {handshakeReads, func() {
			c := &handshakeConn{Conn: &busyConn{reads: handshakeReads}, left: handshakeReads + 1}
			c.in.slots, c.in.deadline = make(chan struct{}, 1), time.Now().Add(time.Hour)
			if n, err := io.Copy(io.Discard, c); n != handshakeReads || err != nil {
				t.Errorf("read %d bytes in a handshake, error %v", n, err)
			}
		}},
		"writer": {writes, func() {
			c := newConn(s, 0, &busyConn{}, peer{}, false)
			c.out.add(make([]byte, writes*writePiece))
			c.output = outputClosing
			c.write()
		}},
	} {
		var turns atomic.Int64
		var stop atomic.Bool
		var other sync.WaitGroup
		other.Go(func() {
			for !stop.Load() {
				turns.Add(1)
				runtime.Gosched()
			}
		})
		run.do()
		if n := turns.Load(); n < int64(run.yields/2) {
			t.Errorf("%s: another goroutine ran %d times, want about %d", name, n, run.yields)
		}
		stop.Store(true)
		other.Wait()
	}
}

// TestOnlyBusyConnectionsYield: busy connections take turns to yield. A connection whose client
// sends rarely does not wait for a turn.
func TestOnlyBusyConnectionsYield(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Server{yields: make(chan struct{}, 1)}
		s.yields <- struct{}{} // another connection has its turn
		var all sync.WaitGroup
		var done [2]atomic.Bool
		for i, pause := range []time.Duration{0, time.Second} {
			c := newConn(s, 0, &busyConn{reads: 10 * readsPerTurn, pause: pause}, peer{}, false)
			all.Go(func() {
				_, _ = io.Copy(io.Discard, bufio.NewReaderSize(c.blockingIO, 16))
				done[i].Store(true)
			})
		}
		time.Sleep(time.Minute * readsPerTurn)
		if done[0].Load() || !done[1].Load() {
			t.Errorf("the busy one has read all: %v, the other one: %v", done[0].Load(), done[1].Load())
		}
		<-s.yields
		all.Wait()
	})
}

// busyConn is a connection that has reads bytes to read, one at a time, and accepts all writes.
type busyConn struct {
	net.Conn
	reads int
	pause time.Duration // before each byte
}

func (c *busyConn) Read(b []byte) (int, error) {
	if c.reads == 0 {
		return 0, io.EOF
	}
	if c.pause > 0 {
		time.Sleep(c.pause)
	}
	c.reads--
	return 1, nil
}

func (c *busyConn) Write(b []byte) (int, error) { return len(b), nil }
func (c *busyConn) RemoteAddr() net.Addr        { return nil }
func (c *busyConn) Close() error                { return nil }
