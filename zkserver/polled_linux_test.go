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

// serveTCP starts a server that listens on a port.
func serveTCP(t *testing.T, change func(*Options)) (*Server, string) {
	t.Helper()
	opts := testOptions(t)
	opts.Logger = discard()
	if change != nil {
		change(&opts)
	}
	s := start(t, opts)
	return s, listenTCP(t, s)
}

// TestPolledSessionsNeedNoGoroutine opens many sessions. The loop reads all of them.
func TestPolledSessionsNeedNoGoroutine(t *testing.T) {
	s, addr := serveTCP(t, func(o *Options) { o.MaxClientConns = -1 })
	first := dialTCP(t, addr)
	before, clients := runtime.NumGoroutine(), make([]*rawClient, 100)
	for i := range clients {
		clients[i] = dialTCP(t, addr)
	}
	for _, c := range clients {
		c.do(wire.OpPing, nil)
	}
	if n := runtime.NumGoroutine() - before; n > len(clients)/4 {
		t.Errorf("%d goroutines for %d more sessions", n, len(clients))
	}
	polls := 0
	s.runOnLoop(func() { polls = s.loop.polls })
	if polls != len(clients)+1 {
		t.Errorf("%d connections are polled, want %d", polls, len(clients)+1)
	}
	for _, c := range clients {
		c.do(wire.OpCloseSession, nil)
		c.wantClosed()
	}
	first.create("/x", wire.ModePersistent)
	s.runOnLoop(func() { polls = len(s.loop.slots) - len(s.loop.free) })
	if polls != 1 || s.Stats().Connections != 1 {
		t.Errorf("%d slots and %d connections are left, want 1 of each", polls, s.Stats().Connections)
	}
}

// TestPolledRequestsInPiecesAreAnswered sends a request byte by byte, one together with part of
// the next, and one that is larger than the read buffer.
func TestPolledRequestsInPiecesAreAnswered(t *testing.T) {
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
	c.write(append(create("/large", 3*pollBuffer), create("/second", 5)[:7]...))
	wantAnswer(t, c)
	c.xid--
	c.write(create("/second", 5)[7:])
	wantAnswer(t, c)
	got := c.do(wire.OpGetData, &wire.GetDataRequest{Path: "/large"}).(*wire.GetDataResponse)
	if len(got.Data) != 3*pollBuffer || !c.exists("/slow") || !c.exists("/second") {
		t.Errorf("a node is missing, or has %d bytes", len(got.Data))
	}
}

// TestFlushesAreSpreadOverRounds: many slow clients begin to read at once. The loop writes to
// one of them and then serves other clients.
func TestFlushesAreSpreadOverRounds(t *testing.T) {
	s, addr := serveTCP(t, nil)
	const size, gets = 1_000_000, 30 // more than the sockets accept
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

// TestEventsOfManyClientsAreSpreadOverRounds: a change causes an event for many clients. The
// loop writes some of them and the answers, and the other events in the next rounds. A client
// that gets an answer gets the event before it.
func TestEventsOfManyClientsAreSpreadOverRounds(t *testing.T) {
	s, addr := serveTCP(t, nil)
	all := []*rawClient{dialTCP(t, addr), dialTCP(t, addr), login(t, s, time.Hour)}
	event := wire.AppendEvent(nil, 1, &wire.WatcherEvent{Type: wire.EventNodeDataChanged, Path: "/"})
	answer := wire.AppendReply(nil, wire.ReplyHeader{Xid: 77}, nil)
	s.runOnLoop(func() {
		addOutput := func(c *conn, frame []byte, answered int) {
			s.beginExchange(c)
			c.inFlight = output{frames: pieces{first: frame}, answered: answered, listed: true}
			s.loop.inFlight.conns = append(s.loop.inFlight.conns, c)
		}
		var conns []*conn
		for _, c := range s.loop.conns {
			conns = append(conns, c)
			addOutput(c, event, 0)
		}
		s.deliver(0)
		if n, ms := len(s.loop.writable), s.waitMillis(); n != len(all) || ms != 0 {
			t.Errorf("%d clients of %d wait for an event, and the loop sleeps %d ms", n, len(all), ms)
		}
		for _, c := range conns {
			addOutput(c, answer, 1)
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

// TestPipelineBeyondMaxOutstandingIsAnswered writes many more requests than may be unanswered,
// and closes the sending side. The server answers all in order.
func TestPipelineBeyondMaxOutstandingIsAnswered(t *testing.T) {
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

// TestSlowReaderCatchesUp: a client reads nothing until the server stops answering. Then it
// reads everything.
func TestSlowReaderCatchesUp(t *testing.T) {
	s, addr := serveTCP(t, nil)
	c := dialTCP(t, addr)
	c.create("/data", wire.ModePersistent)
	c.do(wire.OpSetData, &wire.SetDataRequest{Path: "/data", Data: make([]byte, 200_000), Version: -1})
	const n = 400
	for range n {
		c.send(wire.OpGetData, &wire.GetDataRequest{Path: "/data"})
	}
	blocked := func() (yes bool) {
		s.runOnLoop(func() {
			for _, k := range s.loop.conns {
				yes = yes || isBlocked(k)
			}
		})
		return yes
	}
	for !blocked() {
		runtime.Gosched()
	}
	// The server still serves other clients.
	if other := dialTCP(t, addr); !other.exists("/data") {
		t.Error("no node")
	}
	for i := range n {
		if _, r, err := c.next(); err != nil || r.Remaining() < 200_000 {
			t.Fatalf("answer %d: error %v", i, err)
		}
	}
}

// TestBadLengthEndsPolledConnection sends an impossible length after a valid request.
func TestBadLengthEndsPolledConnection(t *testing.T) {
	s, addr := serveTCP(t, nil)
	for _, n := range []uint32{1 << 31, 1<<31 - 1, uint32(s.opts.MaxFrame) + 1} {
		c := dialTCP(t, addr)
		c.write(binary.BigEndian.AppendUint32(wire.AppendRequest(nil, 1, wire.OpExists, &wire.ExistsRequest{Path: "/"}), n))
		wantAnswer(t, c)
		c.wantClosed()
	}
	if n := s.Stats().ConnectionsCut.FrameTooLong; n != 3 {
		t.Errorf("%d connections count as cut for their frames, want 3", n)
	}
}

// TestShutdownEndsPolledConnections ends a server by Shutdown or Close. One client is idle.
// Another does not read, or begins only at the end.
func TestShutdownEndsPolledConnections(t *testing.T) {
	for name, end := range map[string]func(*Server) error{
		"shutdown": func(s *Server) error { return s.Shutdown(t.Context()) },
		"close":    (*Server).Close,
	} {
		t.Run(name, func(t *testing.T) {
			s, addr := serveTCP(t, nil)
			a, nonReader := dialTCP(t, addr), dialTCP(t, addr)
			a.create("/data", wire.ModePersistent)
			a.do(wire.OpSetData, &wire.SetDataRequest{Path: "/data", Data: make([]byte, 1_000_000), Version: -1})
			for range 50 {
				nonReader.send(wire.OpGetData, &wire.GetDataRequest{Path: "/data"})
			}
			a.do(wire.OpPing, nil)
			if name == "shutdown" {
				go io.Copy(io.Discard, nonReader.nc)
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

// TestSilentPolledClientExpires checks that a session expires while the loop waits only for the
// clock.
func TestSilentPolledClientExpires(t *testing.T) {
	_, addr := serveTCP(t, nil)
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	c, began := newRawClient(t, nc), time.Now()
	c.handshake(wire.ConnectRequest{Timeout: 300})
	c.wantClosed()
	if took := time.Since(began); took < 300*time.Millisecond {
		t.Errorf("the session ended after %v, want no less than 300ms", took)
	}
}

// TestRequestsAreAppliedDuringSync: two sessions with sockets write to a slow disk, one of them
// at the beginning of a sync. The loop must apply a request while a sync is running.
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
			time.Sleep(5 * minAsyncSync) // the disk is slow
		}
		return memfs.Fault{}
	})
	stop, done := make(chan int), make(chan error, 1)
	end := sync.OnceFunc(func() { close(stop) })
	defer end()
	go func() { // ends with stop or an error
		for n := 0; ; n++ {
			select {
			case <-stop:
				done <- nil
				return
			case <-syncing:
				if err := b.tryCreate(fmt.Sprintf("/b%d", n)); err != nil {
					done <- err
					return
				}
			}
		}
	}()
	// One write of a suffices, but on a busy machine b may take longer than a sync.
	const most = 1000
	overlaps := 0
	for n := 0; n < most && overlaps == 0; n++ {
		must(t, a.tryCreate(fmt.Sprintf("/a%d", n)))
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

// TestLongAnswerIsNotCopied: the loop encodes a long answer. It does not copy the part that the
// socket does not accept, because all other clients would wait for that.
func TestLongAnswerIsNotCopied(t *testing.T) {
	const size = 24 << 20
	s, addr := serveTCP(t, func(o *Options) { o.MaxFrame = 32 << 20 })
	c := dialTCP(t, addr)
	c.create("/data", wire.ModePersistent)
	c.do(wire.OpSetData, &wire.SetDataRequest{Path: "/data", Data: make([]byte, size), Version: -1})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	c.send(wire.OpGetData, &wire.GetDataRequest{Path: "/data"})
	k := s.onlyConn()
	waitFor(t, "the output grows", func() bool { return k.unread() >= size/2 })
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > size*3/2 {
		t.Errorf("an answer of %d MiB took %d MiB of new memory", size>>20, n>>20)
	}
}

// TestPartlyReadAnswersCountWhole: a long answer stays in memory until the client has read
// almost all of it. So all of it counts against MaxUnreadTotal.
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

// TestResetSlowReaderIsUnregistered: a client requests far more than it reads, and is killed, so
// its kernel resets the connection. The connection must end immediately, not with its session an
// hour later.
func TestResetSlowReaderIsUnregistered(t *testing.T) {
	for name, requests := range map[string]int{"one long answer": 1, "more requests": 8} {
		t.Run(name, func(t *testing.T) {
			s, addr := serveTCP(t, func(o *Options) { o.MaxFrame = 32 << 20 })
			c := dialTCP(t, addr)
			c.create("/data", wire.ModePersistent)
			c.do(wire.OpSetData, &wire.SetDataRequest{Path: "/data", Data: make([]byte, 12<<20), Version: -1})
			for range requests {
				c.send(wire.OpGetData, &wire.GetDataRequest{Path: "/data"})
			}
			k := s.onlyConn()
			waitFor(t, "the output grows", func() bool { return k.unread() >= maxPending })
			c.nc.(*net.TCPConn).SetLinger(0)
			c.nc.Close()
			waitFor(t, "no connection is left", func() bool { return s.Stats().Connections == 0 })
			if st := s.Stats(); st.Sessions != 1 || st.ConnectionsCut.SlowReaders != 0 {
				t.Errorf("%d sessions, %d connections cut as slow; want 1 and 0", st.Sessions, st.ConnectionsCut.SlowReaders)
			}
		})
	}
}

// TestResetDuringCloseIsUnregistered resets a connection that the server is about to close, with
// an unread answer.
func TestResetDuringCloseIsUnregistered(t *testing.T) {
	s, addr := serveTCP(t, func(o *Options) { o.MaxFrame = 32 << 20 })
	c := dialTCP(t, addr)
	c.create("/data", wire.ModePersistent)
	c.do(wire.OpSetData, &wire.SetDataRequest{Path: "/data", Data: make([]byte, 12<<20), Version: -1})
	c.send(wire.OpGetData, &wire.GetDataRequest{Path: "/data"})
	c.send(wire.OpCloseSession, nil)
	k := s.onlyConn()
	waitFor(t, "the output grows", func() bool { return k.unread() >= maxPending })
	c.nc.(*net.TCPConn).SetLinger(0)
	c.nc.Close()
	waitFor(t, "no connection is left", func() bool { return s.Stats().Connections == 0 })
	if n := s.Stats().Sessions; n != 0 {
		t.Errorf("%d sessions are left, want none: its client closed it", n)
	}
}

// TestClientWithClosedReadSideIsClosed: a client on a unix socket closes its reading side and
// continues to send. The server closes the connection.
func TestClientWithClosedReadSideIsClosed(t *testing.T) {
	s := start(t, testOptions(t))
	ln, err := net.Listen("unix", filepath.Join(t.TempDir(), "socket"))
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(ln)
	c := dialSocket(t, "unix", ln.Addr().String())
	must(t, c.nc.(*net.UnixConn).CloseRead())
	c.send(wire.OpPing, nil)
	waitFor(t, "no connection is left", func() bool { return s.Stats().Connections == 0 })
}

// TestPingAfterLongAnswerExtendsSession: a ping extends the session although its client is still
// reading a long answer.
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
	k := s.onlyConn()
	waitFor(t, "requests wait for the client to read", func() bool { return isBlocked(k) })
	before := end()
	c.send(wire.OpPing, nil)
	waitFor(t, "the ping counts", func() bool { return end() > before })
	if !isBlocked(k) {
		t.Error("the output is not blocked any more")
	}
}

// TestLargeRequestInSmallPiecesIsAnswered sends most of a large request at once, the rest byte
// by byte, and its last byte together with the start of the next request.
func TestLargeRequestInSmallPiecesIsAnswered(t *testing.T) {
	s, addr := serveTCP(t, nil)
	c := dialTCP(t, addr)
	all := pipelinedCreates(2, 500_000)
	one := len(all) / 2
	c.write(all[:one-60])
	k := s.onlyConn()
	held := func(n int) func() bool {
		return func() (yes bool) {
			s.runOnLoop(func() { yes = len(k.polled.partial) == n })
			return yes
		}
	}
	waitFor(t, "the first part is read", held(one-60))
	for i := one - 60; i < one-1; i++ {
		c.write(all[i : i+1])
		waitFor(t, "a byte is read", held(i+1))
	}
	c.write(all[one-1 : one+30])
	wantAnswer(t, c)
	waitFor(t, "the next one has begun", held(30))
	c.write(all[one+30:])
	wantAnswer(t, c)
	waitFor(t, "nothing is left", held(0))
	if !c.exists("/n0") || !c.exists("/n1") {
		t.Error("a node is missing")
	}
}

// gatedTCP returns a gatedServer that listens on a port, and a function that unblocks its syncs.
func gatedTCP(t *testing.T, outstanding int) (g *gatedServer, c *rawClient, open func()) {
	mem, fs := onMemory(t, 63)
	s, addr := serveTCP(t, func(o *Options) { o.DataDir, o.setup.FS, o.MaxOutstanding = mem.DataDir, mem.setup.FS, outstanding })
	g = &gatedServer{Server: s, fs: fs, gate: make(chan error)}
	unblock := sync.OnceFunc(func() { close(g.gate) })
	t.Cleanup(unblock) // otherwise the server's end would wait
	c = dialTCP(t, addr)
	c.nc.SetDeadline(time.Now().Add(3 * time.Minute))
	g.blockSyncs()
	return g, c, unblock
}

// pipelinedCreates returns n create requests with size bytes of data each.
func pipelinedCreates(n, size int) (all []byte) {
	for i := range n {
		all = wire.AppendRequest(all, int32(i+1), wire.OpCreate,
			&wire.CreateRequest{Path: fmt.Sprintf("/n%d", i), Data: make([]byte, size), ACL: openACL()})
	}
	return all
}

// TestThrottledConnectionContinuesAfterStats: a client has the maximum of unanswered requests,
// and more in the socket. In the round that finds this, a function is posted to the loop, which
// waits for the sync. The server then answers the rest, although the client sends nothing more.
func TestThrottledConnectionContinuesAfterStats(t *testing.T) {
	g, c, open := gatedTCP(t, 2)
	held, written, asked := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go g.runOnLoop(func() { // runs the next rounds of the loop
		close(held)
		<-written
		g.checkForWork()
		g.round()
		g.postToLoop(func() { close(asked) })
		g.round()
	})
	<-held
	c.write(pipelinedCreates(5, 10))
	close(written)
	waitFor(t, "the connection is throttled", func() bool { return g.count.throttled.Load() > 0 })
	open()
	<-asked
	for range 5 {
		wantAnswer(t, c)
	}
}

// TestStorageFailureClosesPolledSockets fails a sync while clients have sent the maximum, or far
// more. The server closes and unregisters their sockets.
func TestStorageFailureClosesPolledSockets(t *testing.T) {
	for name, test := range map[string]struct{ outstanding, requests, size int }{
		"all read":                {1, 1, 10},
		"more in the socket":      {3, 40, 10_000},
		"high limit, and a flood": {1000, 40, 100_000},
	} {
		t.Run(name, func(t *testing.T) {
			g, c, open := gatedTCP(t, test.outstanding)
			go c.nc.Write(pipelinedCreates(test.requests, test.size)) // ends with the connection
			g.gate <- syscall.EIO
			open()
			waitFor(t, "no connection is left", func() bool { return g.Stats().Connections == 0 })
			if n := g.Stats().Outstanding; n != 0 {
				t.Errorf("%d requests are outstanding without a connection", n)
			}
		})
	}
}

// TestAbortWithAnswersInFlightIsUnregistered closes a session when the maximum of output waits
// for a sync, and aborts the connection before the output is sent.
func TestAbortWithAnswersInFlightIsUnregistered(t *testing.T) {
	g, c, open := gatedTCP(t, 1000)
	g.fs.SetFault(nil)
	c.create("/data", wire.ModePersistent)
	c.do(wire.OpSetData, &wire.SetDataRequest{Path: "/data", Data: make([]byte, maxPending-130), Version: -1})
	g.blockSyncs()
	all := wire.AppendRequest(pipelinedCreates(1, 10), 2, wire.OpGetData, &wire.GetDataRequest{Path: "/data"})
	all = wire.AppendRequest(all, 3, wire.OpCloseSession, nil)
	c.write(all)
	k := g.onlyConn()
	waitFor(t, "all is applied", func() bool { return g.requestLimit.requests.Load() == 3 })
	k.abort(errTooSlow)
	waitFor(t, "the loop has seen the abort", func() bool { return !g.hasReady() })
	open()
	waitFor(t, "no connection is left", func() bool { return g.Stats().Connections == 0 })
}

// onlyConn returns the first connection of the server, nil if it has none.
func (s *Server) onlyConn() (c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.live) > 0 {
		c = s.live[0]
	}
	return c
}

// TestPingDuringSyncExtendsSession: because of a large batch, the loop waits for a sync until
// just after a session's deadline. The session's ping arrived in time and is in the socket.
func TestPingDuringSyncExtendsSession(t *testing.T) {
	s, addr := serveTCP(t, nil)
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	c := newRawClient(t, nc)
	c.handshake(wire.ConnectRequest{Timeout: 5000}) // long enough for a busy machine
	s.runOnLoop(func() {
		due, _ := s.loop.tree.NextTick()
		s.loop.syncing, s.loop.filling.size = true, roundBytes+1
		c.send(wire.OpPing, nil)
		time.AfterFunc(due+pauseThreshold/10-s.elapsed(), func() { s.synced <- syncResult{index: s.loop.durableIndex} })
		s.round()
	})
	wantAnswer(t, c)
	if c.exists("/a") {
		t.Error("/a exists")
	}
}

// TestAbortBeforeHandOverIsUnregistered aborts a connection that was handed over. The loop sees
// the abort before it starts to poll the connection.
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

// TestPipelinedSmallRequestsAreServedFirst: an old connection has sent many small requests at
// once, and new connections have sent a larger one each, of which little has arrived.
func TestPipelinedSmallRequestsAreServedFirst(t *testing.T) {
	s := &Server{}
	p, err := newPoller()
	must(t, err)
	t.Cleanup(p.close)
	s.poll.Store(p)
	const now = time.Hour
	polled := func(calmSince time.Duration, read, unread []byte) *conn {
		fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
		must(t, err)
		for _, fd := range fds {
			t.Cleanup(func() { syscall.Close(fd) })
		}
		_, err = syscall.Write(fds[1], unread)
		must(t, err)
		return &conn{calmSince: calmSince, polled: polledIO{fd: int32(fds[0]), partial: read, active: true}}
	}
	small := bytes.Repeat(append([]byte{0, 0, 0, 96}, make([]byte, 96)...), 20)
	large := []byte{0, 0, 8, 0, 'x'}
	old := polled(0, nil, small)
	conns := []*conn{polled(now, nil, large), polled(now, large[:2], large[2:]), old, polled(now, large, nil)}
	s.loop.cheapFirst = true
	if s.orderByCharge(conns, now); conns[0] != old {
		t.Error("larger requests are served before pipelined small ones")
	}
	for i, c := range conns {
		want := 4 + 2048
		if c == old {
			want = 100
		}
		if got := s.inputSize(c); got != want {
			t.Errorf("connection %d: the next request has %d bytes, want %d", i, got, want)
		}
	}
}
