package zkserver

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/zklock/zklock/internal/wal/memfs"
	"github.com/zklock/zklock/internal/wire"
)

// dialTCP opens a session through a socket.
func dialTCP(t *testing.T, addr string) *raw {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	nc.SetDeadline(time.Now().Add(time.Minute))
	c := over(t, nc)
	c.handshake(wire.ConnectRequest{Timeout: 30_000})
	return c
}

// serveTCP makes a server with a port.
func serveTCP(t *testing.T, change func(*Options)) (*Server, string) {
	t.Helper()
	opts := quiet(t)
	opts.Logger = discard()
	if change != nil {
		change(&opts)
	}
	s := start(t, opts)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(ln)
	return s, ln.Addr().String()
}

// TestSessionsNeedNoGoroutine opens many sessions: the loop reads all of them.
func TestSessionsNeedNoGoroutine(t *testing.T) {
	s, addr := serveTCP(t, func(o *Options) { o.MaxClientConns = -1 })
	first := dialTCP(t, addr)
	before, crowd := runtime.NumGoroutine(), make([]*raw, 100)
	for i := range crowd {
		crowd[i] = dialTCP(t, addr)
	}
	for _, c := range crowd {
		c.do(wire.OpPing, nil)
	}
	if n := runtime.NumGoroutine() - before; n > len(crowd)/4 {
		t.Errorf("%d goroutines for %d more sessions", n, len(crowd))
	}
	polls := 0
	s.ask(func() { polls = s.loop.polls })
	if polls != len(crowd)+1 {
		t.Errorf("%d connections are polled, want %d", polls, len(crowd)+1)
	}
	for _, c := range crowd {
		c.do(wire.OpCloseSession, nil)
		c.wantClosed()
	}
	first.create("/x", wire.ModePersistent)
	s.ask(func() { polls = len(s.loop.slots) - len(s.loop.free) })
	if polls != 1 || s.Stats().Connections != 1 {
		t.Errorf("%d slots and %d connections are left, want one", polls, s.Stats().Connections)
	}
}

// TestRequestsInPieces sends requests byte by byte, in one piece with others, and
// one that is larger than what a read takes.
func TestRequestsInPieces(t *testing.T) {
	_, addr := serveTCP(t, nil)
	c := dialTCP(t, addr)
	create := func(path string, size int) []byte {
		c.xid++
		return wire.AppendRequest(nil, c.xid, wire.OpCreate, &wire.CreateRequest{Path: path, Data: make([]byte, size), ACL: openACL()})
	}
	for _, b := range create("/slow", 10) {
		c.write([]byte{b})
	}
	wantAnswer(t, c)
	c.write(append(create("/large", 3*pollBuffer), create("/behind", 5)[:7]...))
	wantAnswer(t, c)
	c.xid--
	c.write(create("/behind", 5)[7:])
	wantAnswer(t, c)
	got := c.do(wire.OpGetData, &wire.GetDataRequest{Path: "/large"}).(*wire.GetDataResponse)
	if len(got.Data) != 3*pollBuffer || !c.exists("/slow") || !c.exists("/behind") {
		t.Errorf("a node is missing, or has %d bytes", len(got.Data))
	}
}

// TestPipelineBeyondTheLimit writes many more requests than may be unanswered: all
// are answered in their order, also those that stand in the socket at its end.
func TestPipelineBeyondTheLimit(t *testing.T) {
	s, addr := serveTCP(t, func(o *Options) { o.MaxOutstanding = 7 })
	c := dialTCP(t, addr)
	const n = 20_000
	var all []byte
	for i := range n {
		all = wire.AppendRequest(all, int32(i+1), wire.OpExists, &wire.ExistsRequest{Path: "/"})
	}
	go func() {
		c.nc.Write(all)
		c.nc.(*net.TCPConn).CloseWrite()
	}()
	for i := range n {
		if h, _, err := c.next(); err != nil || h.Xid != int32(i+1) {
			t.Fatalf("answer %d: %v, error %v", i+1, h, err)
		}
	}
	c.wantClosed()
	if s.Stats().Outstanding != 0 {
		t.Errorf("%d requests are outstanding at the end", s.Stats().Outstanding)
	}
}

// TestSlowReaderCatchesUp reads nothing until the server has stopped to answer:
// then everything comes.
func TestSlowReaderCatchesUp(t *testing.T) {
	s, addr := serveTCP(t, nil)
	c := dialTCP(t, addr)
	c.create("/data", wire.ModePersistent)
	c.do(wire.OpSetData, &wire.SetDataRequest{Path: "/data", Data: make([]byte, 200_000), Version: -1})
	const n = 400
	for range n {
		c.send(wire.OpGetData, &wire.GetDataRequest{Path: "/data"})
	}
	parked := func() (yes bool) {
		s.ask(func() {
			for _, k := range s.loop.conns {
				yes = yes || k.backlogged()
			}
		})
		return yes
	}
	for !parked() {
		runtime.Gosched()
	}
	// The others are served meanwhile.
	if other := dialTCP(t, addr); !other.exists("/data") {
		t.Error("no node")
	}
	for i := range n {
		if _, r, err := c.next(); err != nil || r.Remaining() < 200_000 {
			t.Fatalf("answer %d: error %v", i, err)
		}
	}
}

// TestBadLengthEndsAPolledConnection sends what is no request, after a good one.
func TestBadLengthEndsAPolledConnection(t *testing.T) {
	s, addr := serveTCP(t, nil)
	for _, length := range []uint32{1 << 31, 1<<31 - 1, uint32(s.opts.MaxFrame) + 1} {
		c := dialTCP(t, addr)
		c.write(binary.BigEndian.AppendUint32(wire.AppendRequest(nil, 1, wire.OpExists, &wire.ExistsRequest{Path: "/"}), length))
		wantAnswer(t, c)
		c.wantClosed()
	}
	if n := s.Stats().ConnectionsCut.FrameTooLong; n != 3 {
		t.Errorf("%d connections count as cut for their frames, want 3", n)
	}
}

// TestServerEndsPolledConnections ends servers in either way, with clients that
// have nothing under way and one that does not read, or only now.
func TestServerEndsPolledConnections(t *testing.T) {
	for name, end := range map[string]func(*Server) error{
		"shutdown": func(s *Server) error { return s.Shutdown(t.Context()) },
		"close":    (*Server).Close,
	} {
		t.Run(name, func(t *testing.T) {
			s, addr := serveTCP(t, nil)
			a, deaf := dialTCP(t, addr), dialTCP(t, addr)
			a.create("/data", wire.ModePersistent)
			a.do(wire.OpSetData, &wire.SetDataRequest{Path: "/data", Data: make([]byte, 1_000_000), Version: -1})
			for range 50 {
				deaf.send(wire.OpGetData, &wire.GetDataRequest{Path: "/data"})
			}
			a.do(wire.OpPing, nil)
			if name == "shutdown" {
				go io.Copy(io.Discard, deaf.nc)
			}
			if err := end(s); err != nil {
				t.Error(err)
			}
			a.wantClosed()
			if n := s.Stats().Connections; n != 0 {
				t.Errorf("%d connections are left", n)
			}
		})
	}
}

// TestSessionOfASilentPolledClientEnds at its timeout, though the loop has nothing
// to wait for but the clock.
func TestSessionOfASilentPolledClientEnds(t *testing.T) {
	_, addr := serveTCP(t, nil)
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	c, began := over(t, nc), time.Now()
	c.handshake(wire.ConnectRequest{Timeout: 300})
	c.wantClosed()
	if took := time.Since(began); took < 300*time.Millisecond {
		t.Errorf("the session ended after %v, want no less than 300ms", took)
	}
}

// TestSlowDiskHoldsNobodyUp has two sessions with sockets write to a slow disk, one of
// them at the beginning of each sync that finds it idle: what comes in during a sync is
// applied while the next one is under way.
func TestSlowDiskHoldsNobodyUp(t *testing.T) {
	mem, fs := onMemory(t, 62)
	s, addr := serveTCP(t, func(o *Options) { o.DataDir, o.FS = mem.DataDir, mem.FS })
	a, b := dialTCP(t, addr), dialTCP(t, addr)
	syncing := make(chan int)
	fs.SetFault(func(op memfs.Op) memfs.Fault {
		if op.Kind == memfs.OpSync {
			select {
			case syncing <- 1:
			default:
			}
			time.Sleep(5 * slowSync) // such is the disk
		}
		return memfs.Fault{}
	})
	stop, done := make(chan int), make(chan error, 1)
	end := sync.OnceFunc(func() { close(stop) })
	defer end()
	go func() { // ends with stop, or an attempt that fails
		for n := 0; ; n++ {
			select {
			case <-stop:
				done <- nil
				return
			case <-syncing:
				if err := b.attempt(fmt.Sprintf("/b%d", n)); err != nil {
					done <- err
					return
				}
			}
		}
	}()
	// One after the other will do, but a busy machine may keep b for longer than a sync.
	const most = 1000
	overlaps := 0
	for n := 0; n < most && overlaps == 0; n++ {
		if err := a.attempt(fmt.Sprintf("/a%d", n)); err != nil {
			t.Fatal(err)
		}
		if n%10 == 9 {
			s.ask(func() { overlaps = s.loop.overlaps })
		}
	}
	end()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if overlaps == 0 {
		t.Errorf("of %d writes none was applied during a sync", most)
	}
}
