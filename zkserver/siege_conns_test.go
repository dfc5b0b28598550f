package zkserver

import (
	"fmt"
	"net"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// TestSiegeOfIdleConnections has connections with sessions that do nothing.
func TestSiegeOfIdleConnections(t *testing.T) {
	n := scale(1000, 10_000)
	g := besiege(t, func(*Options) {})
	idle := make([]*raw, n)
	for i := range idle {
		idle[i] = login(t, g.s, time.Hour)
	}
	if st := g.s.Stats(); st.Connections != n+1 || st.Sessions != n+1 {
		t.Errorf("%d connections, %d sessions, want %d", st.Connections, st.Sessions, n+1)
	}
	g.lift(uint64(n) * 40 << 10)
	g.relieve(idle)
}

// TestSiegeByFlood has connections that come, get a session and leave it behind.
func TestSiegeByFlood(t *testing.T) {
	n, most := scale(3000, 100_000), scale(1000, 30_000)
	g := besiege(t, func(o *Options) { o.MaxSessions = most })
	served := 0
	for range n {
		c := open(t, g.s)
		c.nc.Write(wire.AppendRecord(nil, &wire.ConnectRequest{Timeout: 3_600_000}))
		if _, err := c.frame(); err == nil {
			served++
		}
		c.nc.Close()
	}
	if st := g.s.Stats(); served != most-1 || st.LimitRefusals.Sessions != int64(n-served) {
		t.Errorf("%d of %d got a session, %d were refused, want %d", served, n, st.LimitRefusals.Sessions, most-1)
	}
	g.lift(uint64(most)*4<<10 + uint64(n)*2<<10)
}

// TestSiegeByConnectionsOfOneAddress goes through a listener of TCP. Each has sent its
// connect request, as one that has not gives way to the next.
func TestSiegeByConnectionsOfOneAddress(t *testing.T) {
	n := scale(300, 5000)
	g := besiege(t, func(o *Options) { o.MaxClientConns = 100 })
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go g.s.Serve(ln)
	var refused int64
	for range n {
		nc, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { nc.Close() })
		nc.Write(wire.AppendRecord(nil, &wire.ConnectRequest{Timeout: 3_600_000}))
		over(t, nc).frame() // the answer, or the end
		if refused = g.s.Stats().ConnectionsRefused.TooManyPerAddress; refused > 0 {
			nc.Close() // or this process runs out of files
		}
	}
	for {
		if st := g.s.Stats(); st.ConnectionsRefused.TooManyPerAddress == int64(n-100) {
			break
		} else if st.Connections > 101 {
			t.Fatalf("%d connections from one address", st.Connections-1)
		}
	}
	g.lift(8 << 20)
}

// TestSiegeByLoris has connections that send a byte now and then, half of them in
// their handshakes, half in requests. In a bubble: it takes the sessions' time.
func TestSiegeByLoris(t *testing.T) {
	n := scale(200, 3000)
	synctest.Test(t, func(t *testing.T) {
		opts := quiet(t)
		opts.Logger = discard()
		s := start(t, opts)
		good := login(t, s, time.Hour)
		before := heap()
		var loris sync.WaitGroup
		for i := range n {
			c := open(t, s)
			bytes := wire.AppendRecord(nil, &wire.ConnectRequest{Timeout: 1000})
			if i%2 == 0 {
				c.handshake(wire.ConnectRequest{Timeout: 5000})
				bytes = append(length(1_000_000), make([]byte, 1000)...)
			}
			loris.Go(func() { trickle(c, bytes, 700*time.Millisecond) }) // ends with the connection
		}
		for range 100 {
			good.create("/n", wire.ModeEphemeral)
			good.do(wire.OpDelete, &wire.DeleteRequest{Path: "/n", Version: -1})
			time.Sleep(40 * time.Millisecond)
		}
		if grown := int64(heap()) - int64(before); grown > int64(n)*64<<10 {
			t.Errorf("%d bytes are in use for %d clients that trickle", grown, n)
		} else {
			t.Logf("%d KiB a connection", grown>>10/int64(n))
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		st := s.Stats()
		if st.Connections != 1 || st.ConnectionsCut.HandshakeTimeouts != int64(n/2) || st.SessionsExpired != int64(n-n/2) {
			t.Errorf("%d connections are left, %d handshakes and %d sessions timed out", st.Connections, st.ConnectionsCut.HandshakeTimeouts, st.SessionsExpired)
		}
		loris.Wait()
	})
}

// TestSiegeByHalfClosed has peers that have sent their last byte and still read,
// and such that end without a word, over TCP and in memory.
func TestSiegeByHalfClosed(t *testing.T) {
	n := scale(100, 2000)
	g := besiege(t, func(o *Options) { o.MaxClientConns = -1 })
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go g.s.Serve(ln)
	for i := range n {
		var nc net.Conn
		if i%2 == 0 {
			nc, err = net.Dial("tcp", ln.Addr().String())
		} else {
			nc, err = g.s.DialContext(t.Context(), "", "")
		}
		if err != nil {
			t.Fatal(err)
		}
		b := wire.AppendRecord(nil, &wire.ConnectRequest{Timeout: 10_000})
		for xid := range int32(20) {
			b = wire.AppendRequest(b, xid, wire.OpCreate, &wire.CreateRequest{Path: fmt.Sprintf("/h%d-%d", i, xid), ACL: openACL()})
		}
		if i%4 >= 2 {
			b = b[:len(b)-7] // the last request is not whole
		}
		if _, err := nc.Write(b); err != nil {
			t.Fatal(err)
		}
		nc.(interface{ CloseWrite() error }).CloseWrite()
		c := over(t, nc)
		want := 21 // with the handshake's
		if i%4 >= 2 {
			want--
		}
		if got := c.drain(); got != want {
			t.Errorf("peer %d had %d answers, want %d", i, got, want)
		}
		nc.Close()
	}
	g.lift(32 << 20)
	g.relieve(nil)
}

// TestSiegeByTheDeaf has clients that ask for much and never read.
func TestSiegeByTheDeaf(t *testing.T) {
	n := scale(240, 1000)
	const most = 8 << 20
	g := besiege(t, func(o *Options) { o.MaxUnreadTotal = most })
	big := login(t, g.s, time.Hour)
	big.do(wire.OpCreate, &wire.CreateRequest{Path: "/big", Data: make([]byte, 900_000), ACL: openACL()})
	deaf := make([]*raw, n)
	for i := range deaf {
		deaf[i] = login(t, g.s, time.Hour)
		for range 10 {
			deaf[i].send(wire.OpGetData, &wire.GetDataRequest{Path: "/big"})
		}
	}
	// Each has asked for more than all of them may have.
	big.do(wire.OpPing, nil)
	for {
		// What was cut is held until its goroutines have noticed.
		st := g.s.Stats()
		if cut := int(st.ConnectionsCut.SlowReaders); cut >= n/2 && st.Connections <= n+2-cut {
			break
		}
		runtime.Gosched()
	}
	// Without a bound it would be more than a megabyte for each.
	g.lift(12*most + uint64(n)*200<<10)
	g.relieve(append(deaf, big))
}
