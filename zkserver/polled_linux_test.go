package zkserver

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/zklock/zklock/internal/wal/memfs"
	"github.com/zklock/zklock/internal/wire"
)

// serveTCP makes a server with a port.
func serveTCP(t *testing.T, change func(*Options)) (*Server, string) {
	t.Helper()
	opts := quiet(t)
	opts.Logger = discard()
	if change != nil {
		change(&opts)
	}
	s := start(t, opts)
	return s, listenTCP(t, s)
}

// TestPolledSessionsNeedNoGoroutine opens many sessions: the loop reads all of them.
func TestPolledSessionsNeedNoGoroutine(t *testing.T) {
	s, addr := serveTCP(t, func(o *Options) { o.MaxClientConns = -1 })
	first := dialTCP(t, addr)
	before, crowd := runtime.NumGoroutine(), make([]*rawClient, 100)
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
	s.runOnLoop(func() { polls = s.loop.polls })
	if polls != len(crowd)+1 {
		t.Errorf("%d connections are polled, want %d", polls, len(crowd)+1)
	}
	for _, c := range crowd {
		c.do(wire.OpCloseSession, nil)
		c.wantClosed()
	}
	first.create("/x", wire.ModePersistent)
	s.runOnLoop(func() { polls = len(s.loop.slots) - len(s.loop.free) })
	if polls != 1 || s.Stats().Connections != 1 {
		t.Errorf("%d slots and %d connections are left, want one", polls, s.Stats().Connections)
	}
}

// TestPolledRequestsInPieces sends requests byte by byte, in one piece with others, and
// one that is larger than what a read takes.
func TestPolledRequestsInPieces(t *testing.T) {
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

// TestFlushesAreSpreadOverRounds: when many slow clients begin to read, the loop writes to
// some of them and then serves others.
func TestFlushesAreSpreadOverRounds(t *testing.T) {
	s, addr := serveTCP(t, nil)
	const size, gets = 1_000_000, 30 // more than the sockets take
	var slow []*rawClient
	for range 3 {
		c := dialTCP(t, addr)
		if len(slow) == 0 {
			c.do(wire.OpCreate, &wire.CreateRequest{Path: "/big", Data: make([]byte, size), ACL: openACL()})
		}
		for range gets {
			c.send(wire.OpGetData, &wire.GetDataRequest{Path: "/big"})
		}
		slow = append(slow, c)
	}
	full := func() (n int) {
		s.runOnLoop(func() {
			for _, c := range s.loop.slots {
				if c.unread() >= maxPending {
					n++
				}
			}
		})
		return n
	}
	for full() < len(slow) {
		runtime.Gosched()
	}
	s.runOnLoop(func() {
		s.loop.writable = nil
		for slot := range s.loop.slots {
			s.loop.slots[slot].polled.writable = false
			s.onSocketEvent(slot, false, false, true)
			s.onSocketEvent(slot, false, false, true)
		}
		if n := len(s.loop.writable); n != len(slow) {
			t.Errorf("%d connections wait for a flush, want %d", n, len(slow))
		}
		s.flushWritable(0)
		if n, ms := len(s.loop.writable), s.waitMillis(); n != len(slow)-1 || ms != 0 {
			t.Errorf("%d connections wait after one was flushed, and the loop sleeps %d ms", n, ms)
		}
	})
	for _, c := range slow {
		if n := c.answers(gets); n != gets {
			t.Errorf("%d answers, want %d", n, gets)
		}
	}
}

// TestEventsOfManyClientsAreSpreadOverRounds: a change has an event for many clients. The loop
// writes some of them and the answers, and the other events in the next rounds. A client that
// gets an answer gets the event before it.
func TestEventsOfManyClientsAreSpreadOverRounds(t *testing.T) {
	s, addr := serveTCP(t, nil)
	all := []*rawClient{dialTCP(t, addr), dialTCP(t, addr), login(t, s, time.Hour)}
	event := wire.AppendEvent(nil, 1, &wire.WatcherEvent{Type: wire.EventNodeDataChanged, Path: "/"})
	answer := wire.AppendReply(nil, wire.ReplyHeader{Xid: 77}, nil)
	s.runOnLoop(func() {
		stage := func(c *conn, frame []byte, answered int) {
			s.beginExchange(c)
			c.inFlight = output{frames: pieces{first: frame}, answered: answered, listed: true}
			s.loop.inFlight.conns = append(s.loop.inFlight.conns, c)
		}
		var conns []*conn
		for _, c := range s.loop.conns {
			conns = append(conns, c)
			stage(c, event, 0)
		}
		s.deliver(0)
		if n, ms := len(s.loop.writable), s.waitMillis(); n != len(all) || ms != 0 {
			t.Errorf("%d clients of %d wait for an event, and the loop sleeps %d ms", n, len(all), ms)
		}
		for _, c := range conns {
			stage(c, answer, 1)
		}
		s.deliver(0)
		s.flushWritable(0)
		if n := len(s.loop.writable); n != len(all)-1 {
			t.Errorf("%d clients of %d wait after one round", n, len(all))
		}
	})
	for i, c := range all {
		if b, err := c.frame(); err != nil || !bytes.Equal(b, event[4:]) {
			t.Errorf("client %d: %x, %v, want the event", i, b, err)
		}
		if h, _, err := c.next(); err != nil || h.Xid != 77 {
			t.Errorf("client %d: %+v, %v, want the answer", i, h, err)
		}
	}
}

// TestPipelineBeyondMaxOutstanding writes many more requests than may be unanswered: all
// are answered in their order, also those that stand in the socket at its end.
func TestPipelineBeyondMaxOutstanding(t *testing.T) {
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
		s.runOnLoop(func() {
			for _, k := range s.loop.conns {
				yes = yes || isBlocked(k)
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

// TestBadLengthEndsPolledConnection sends what is no request, after a good one.
func TestBadLengthEndsPolledConnection(t *testing.T) {
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

// TestShutdownEndsPolledConnections ends servers in either way, with clients that
// have nothing under way and one that does not read, or only now.
func TestShutdownEndsPolledConnections(t *testing.T) {
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

// TestSilentPolledClientExpires at its timeout, though the loop has nothing
// to wait for but the clock.
func TestSilentPolledClientExpires(t *testing.T) {
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

// TestRequestsAreAppliedDuringSync has two sessions with sockets write to a slow disk, one of
// them at the beginning of each sync that finds it idle: what comes in during a sync is
// applied while the next one is under way.
func TestRequestsAreAppliedDuringSync(t *testing.T) {
	mem, fs := onMemory(t, 62)
	s, addr := serveTCP(t, func(o *Options) { o.DataDir, o.setup.FS = mem.DataDir, mem.setup.FS })
	a, b := dialTCP(t, addr), dialTCP(t, addr)
	syncing := make(chan int)
	fs.SetFault(func(op memfs.Op) memfs.Fault {
		if op.Kind == memfs.OpSync {
			select {
			case syncing <- 1:
			default:
			}
			time.Sleep(5 * minAsyncSync) // such is the disk
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
		must(t, a.attempt(fmt.Sprintf("/a%d", n)))
		if n%10 == 9 {
			s.runOnLoop(func() { overlaps = s.loop.overlaps })
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

// TestLongAnswerIsNotCopied: the loop encodes a long answer, and does not copy what the
// socket does not take. All other clients would wait for that.
func TestLongAnswerIsNotCopied(t *testing.T) {
	const size = 24 << 20
	s, addr := serveTCP(t, func(o *Options) { o.MaxFrame = 32 << 20 })
	c := dialTCP(t, addr)
	c.create("/data", wire.ModePersistent)
	c.do(wire.OpSetData, &wire.SetDataRequest{Path: "/data", Data: make([]byte, size), Version: -1})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	c.send(wire.OpGetData, &wire.GetDataRequest{Path: "/data"})
	k := s.only()
	until(t, "the answer piles up", func() bool { return k.unread() >= size/2 })
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > size*3/2 {
		t.Errorf("an answer of %d MiB took %d MiB of new memory", size>>20, n>>20)
	}
}

// TestPartlyReadAnswersCountWhole: a long answer stays in memory until the client has read almost
// all of it, so all of it counts against MaxUnreadTotal.
func TestPartlyReadAnswersCountWhole(t *testing.T) {
	const size, n = 24 << 20, 8
	s, addr := serveTCP(t, func(o *Options) { o.MaxFrame, o.MaxUnreadTotal = 32<<20, n*size/2 })
	create := &wire.CreateRequest{Path: "/data", Data: make([]byte, size), ACL: openACL()}
	dialTCP(t, addr).do(wire.OpCreate, create)
	for range n {
		c := dialTCP(t, addr)
		c.send(wire.OpGetData, &wire.GetDataRequest{Path: "/data"})
		_, err := io.CopyN(io.Discard, c.br, size/2)
		must(t, err)
	}
	var unread, memory int
	s.runOnLoop(func() {
		for _, c := range s.loop.conns {
			unread, memory = unread+c.unread(), memory+cap(c.out.first)
		}
	})
	if s.Stats().ConnectionsCut.SlowReaders == 0 || memory > n*size/2 {
		t.Errorf("%d bytes in memory for %d unread ones, %d at most", memory, unread, n*size/2)
	}
}

// TestResetSlowReaderIsUnregistered: a client requests far more than it reads, and is
// killed, so its kernel resets the connection. The connection ends then, and not with its
// session an hour later: the rest of the answers is never read.
func TestResetSlowReaderIsUnregistered(t *testing.T) {
	for name, requests := range map[string]int{"one long answer": 1, "more requests behind": 8} {
		t.Run(name, func(t *testing.T) {
			s, addr := serveTCP(t, func(o *Options) { o.MaxFrame = 32 << 20 })
			c := dialTCP(t, addr)
			c.create("/data", wire.ModePersistent)
			c.do(wire.OpSetData, &wire.SetDataRequest{Path: "/data", Data: make([]byte, 12<<20), Version: -1})
			for range requests {
				c.send(wire.OpGetData, &wire.GetDataRequest{Path: "/data"})
			}
			k := s.only()
			until(t, "the answers pile up", func() bool { return k.unread() >= maxPending })
			c.nc.(*net.TCPConn).SetLinger(0)
			c.nc.Close()
			until(t, "no connection is left", func() bool { return s.Stats().Connections == 0 })
			if st := s.Stats(); st.Sessions != 1 || st.ConnectionsCut.SlowReaders != 0 {
				t.Errorf("%d sessions, %d connections cut as slow; want one, which goes on, and none", st.Sessions, st.ConnectionsCut.SlowReaders)
			}
		})
	}
}

// TestResetDuringCloseIsUnregistered resets a connection that the server is about to
// close, with an answer that was not read.
func TestResetDuringCloseIsUnregistered(t *testing.T) {
	s, addr := serveTCP(t, func(o *Options) { o.MaxFrame = 32 << 20 })
	c := dialTCP(t, addr)
	c.create("/data", wire.ModePersistent)
	c.do(wire.OpSetData, &wire.SetDataRequest{Path: "/data", Data: make([]byte, 12<<20), Version: -1})
	c.send(wire.OpGetData, &wire.GetDataRequest{Path: "/data"})
	c.send(wire.OpCloseSession, nil)
	k := s.only()
	until(t, "the answers pile up", func() bool { return k.unread() >= maxPending })
	c.nc.(*net.TCPConn).SetLinger(0)
	c.nc.Close()
	until(t, "no connection is left", func() bool { return s.Stats().Connections == 0 })
	if n := s.Stats().Sessions; n != 0 {
		t.Errorf("%d sessions are left, want none: the end of it was read", n)
	}
}

// TestClientWithClosedReadSideIsClosed: a client on a unix socket closes its reading side
// and continues to send. The server closes the connection.
func TestClientWithClosedReadSideIsClosed(t *testing.T) {
	s := start(t, quiet(t))
	ln, err := net.Listen("unix", filepath.Join(t.TempDir(), "socket"))
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(ln)
	c := dialSocket(t, "unix", ln.Addr().String())
	must(t, c.nc.(*net.UnixConn).CloseRead())
	c.send(wire.OpPing, nil)
	until(t, "no connection is left", func() bool { return s.Stats().Connections == 0 })
}

// TestPingAfterLongAnswerExtendsSession: a ping arrives while the client slowly reads a
// long answer, and extends the session.
func TestPingAfterLongAnswerExtendsSession(t *testing.T) {
	s, addr := serveTCP(t, func(o *Options) { o.MaxFrame = 32 << 20 })
	c := dialTCP(t, addr)
	c.create("/data", wire.ModePersistent)
	c.do(wire.OpSetData, &wire.SetDataRequest{Path: "/data", Data: make([]byte, 12<<20), Version: -1})
	end := func() (at time.Duration) {
		s.runOnLoop(func() {
			for _, at = range s.loop.tree.SessionEnds() {
			}
		})
		return at
	}
	for range 3 {
		c.send(wire.OpGetData, &wire.GetDataRequest{Path: "/data"})
	}
	k := s.only()
	until(t, "requests wait for the client to read", func() bool { return isBlocked(k) })
	before := end()
	c.send(wire.OpPing, nil)
	until(t, "the ping counts", func() bool { return end() > before })
	if !isBlocked(k) {
		t.Error("the client was not behind any more")
	}
}

// TestLargeRequestInSmallPieces: most of a large request arrives at once, the rest byte by
// byte, and its last byte together with the start of the next request.
func TestLargeRequestInSmallPieces(t *testing.T) {
	s, addr := serveTCP(t, nil)
	c := dialTCP(t, addr)
	all := pipeline(2, 500_000)
	one := len(all) / 2
	c.write(all[:one-60])
	k := s.only()
	held := func(n int) func() bool {
		return func() (yes bool) {
			s.runOnLoop(func() { yes = len(k.polled.partial) == n })
			return yes
		}
	}
	until(t, "the first part is read", held(one-60))
	for i := one - 60; i < one-1; i++ {
		c.write(all[i : i+1])
		until(t, "a byte is read", held(i+1))
	}
	c.write(all[one-1 : one+30])
	wantAnswer(t, c)
	until(t, "the next one has begun", held(30))
	c.write(all[one+30:])
	wantAnswer(t, c)
	until(t, "nothing is left", held(0))
	if !c.exists("/n0") || !c.exists("/n1") {
		t.Error("a node is missing")
	}
}

// gatedTCP is a server with a port whose syncs wait for the gate and give what
// comes through it; the loop leaves them to the syncer.
func gatedTCP(t *testing.T, outstanding int) (g *gated, c *rawClient, open func()) {
	mem, fs := onMemory(t, 63)
	s, addr := serveTCP(t, func(o *Options) { o.DataDir, o.setup.FS, o.MaxOutstanding = mem.DataDir, mem.setup.FS, outstanding })
	g = &gated{Server: s, fs: fs, gate: make(chan error)}
	let := sync.OnceFunc(func() { close(g.gate) })
	t.Cleanup(let) // or the server's end would wait
	c = dialTCP(t, addr)
	c.nc.SetDeadline(time.Now().Add(3 * time.Minute))
	g.shut()
	return g, c, let
}

// until waits for what another goroutine brings about.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	end := time.Now().Add(3 * time.Minute)
	for !ok() {
		if time.Now().After(end) {
			t.Fatalf("waited in vain: %s", what)
		}
		<-time.After(time.Millisecond) // asking all the time would slow down the server
	}
}

// pipeline is n creates, of nodes with data of this size.
func pipeline(n, size int) (all []byte) {
	for i := range n {
		all = wire.AppendRequest(all, int32(i+1), wire.OpCreate,
			&wire.CreateRequest{Path: fmt.Sprintf("/n%d", i), Data: make([]byte, size), ACL: openACL()})
	}
	return all
}

// TestThrottledConnectionContinuesAfterStats has a client with as many requests
// unanswered as it may have, and more in the socket. In the very round that finds
// this somebody asks for the figures, which wait for the sync: the rest is answered
// all the same, without another byte of the client's.
func TestThrottledConnectionContinuesAfterStats(t *testing.T) {
	g, c, open := gatedTCP(t, 2)
	held, written, asked := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go g.runOnLoop(func() { // the rounds of the loop, which does not look up meanwhile
		close(held)
		<-written
		g.checkForWork()
		g.round()
		g.postToLoop(func() { close(asked) })
		g.round()
	})
	<-held
	c.write(pipeline(5, 10))
	close(written)
	until(t, "the connection is held back", func() bool { return g.count.throttled.Load() > 0 })
	open()
	<-asked
	for range 5 {
		wantAnswer(t, c)
	}
}

// TestStorageFailureClosesPolledSockets fails a sync while clients have sent the maximum,
// or far more: the server closes and unregisters their sockets.
func TestStorageFailureClosesPolledSockets(t *testing.T) {
	for name, of := range map[string]struct{ outstanding, requests, size int }{
		"all taken":             {1, 1, 10},
		"more in the socket":    {3, 40, 10_000},
		"no bound, and a flood": {1000, 40, 100_000},
	} {
		t.Run(name, func(t *testing.T) {
			g, c, open := gatedTCP(t, of.outstanding)
			go c.nc.Write(pipeline(of.requests, of.size)) // ends with the connection
			g.gate <- syscall.EIO
			open()
			until(t, "no connection is left", func() bool { return g.Stats().Connections == 0 })
			if n := g.Stats().Outstanding; n != 0 {
				t.Errorf("%d requests are outstanding without a connection", n)
			}
		})
	}
}

// TestAbortWithAnswersInFlightIsUnregistered closes a session after as many answers as may
// wait for a sync, and aborts the connection before they have left.
func TestAbortWithAnswersInFlightIsUnregistered(t *testing.T) {
	g, c, open := gatedTCP(t, 1000)
	g.fs.SetFault(nil)
	c.create("/data", wire.ModePersistent)
	c.do(wire.OpSetData, &wire.SetDataRequest{Path: "/data", Data: make([]byte, maxPending-130), Version: -1})
	g.shut()
	all := wire.AppendRequest(pipeline(1, 10), 2, wire.OpGetData, &wire.GetDataRequest{Path: "/data"})
	all = wire.AppendRequest(all, 3, wire.OpCloseSession, nil)
	c.write(all)
	k := g.only()
	until(t, "all is applied", func() bool { return g.requestLimit.requests.Load() == 3 })
	k.abort(errTooSlow)
	until(t, "the loop has looked", func() bool { return !g.hasReady() })
	open()
	until(t, "no connection is left", func() bool { return g.Stats().Connections == 0 })
}

// only is the one connection.
func (s *Server) only() (c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.live) > 0 {
		c = s.live[0]
	}
	return c
}

// TestPingDuringSyncExtendsSession: the loop waits for a sync, because of a large batch,
// until just after a session's deadline. The session's ping arrived in time and is in the
// socket.
func TestPingDuringSyncExtendsSession(t *testing.T) {
	s, addr := serveTCP(t, nil)
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	c := over(t, nc)
	c.handshake(wire.ConnectRequest{Timeout: 5000}) // a busy machine does not take as long until the ping
	s.runOnLoop(func() {
		due, _ := s.loop.tree.NextTick()
		s.loop.syncing, s.loop.filling.size = true, roundBytes+1
		c.send(wire.OpPing, nil)
		time.AfterFunc(due+pauseThreshold/10-s.elapsed(), func() { s.synced <- syncResult{index: s.loop.durableIndex} })
		s.round()
	})
	wantAnswer(t, c)
	if c.exists("/a") {
		t.Error("there is a node")
	}
}

// TestAbortBeforeHandOverIsUnregistered aborts a connection that was handed over, and the
// loop sees the abort before it starts to poll the connection.
func TestAbortBeforeHandOverIsUnregistered(t *testing.T) {
	s, _ := serveTCP(t, nil)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	client, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	nc, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	k, err := s.admit(nc, true)
	if err != nil || s.openPoller() == nil {
		t.Fatalf("no connection, or no poller: error %v", err)
	}
	fd, err := takeSocket(nc)
	if err != nil {
		t.Fatal(err)
	}
	polls := -1
	s.runOnLoop(func() {
		first := wire.AppendRecord(nil, &wire.ConnectRequest{Timeout: 30_000})
		s.registerHandOver(k, &polledIO{fd: int32(fd), partial: first, readable: true})
		handed := s.takeHandedOver()
		k.abort(errTooSlow)
		s.round()
		s.round()
		for _, c := range handed {
			s.startPolling(c)
		}
		s.round()
		polls = s.loop.polls
	})
	if n := s.Stats().Connections; polls != 0 || n != 0 {
		t.Errorf("%d sockets are polled and %d connections open, want none", polls, n)
	}
}

// isBlocked reports whether the output of c is blocked.
func isBlocked(c *conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.output == outputBlocked
}
