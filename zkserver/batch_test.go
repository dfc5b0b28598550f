package zkserver

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/internal/wal/memfs"
	"github.com/zklock/zklock/internal/wire"
)

// gated is a server with a writer, and a reader that watches the root's children, on a disk
// whose syncs wait for gate and return what is sent through it. The loop leaves syncs to
// the syncer, as with many clients.
type gated struct {
	*Server
	fs             *memfs.FS
	gate           chan error
	writer, reader *rawClient
}

func behindGate(t *testing.T) *gated {
	opts, fs := onMemory(t, 61)
	g := &gated{Server: start(t, opts), fs: fs, gate: make(chan error)}
	g.writer, g.reader = login(t, g.Server, time.Hour), login(t, g.Server, time.Hour)
	g.reader.do(wire.OpGetChildren, &wire.GetChildrenRequest{Path: "/", Watch: true})
	g.shut()
	return g
}

// shut makes syncs wait from now on.
func (g *gated) shut() {
	g.runOnLoop(func() { g.loop.busyDuringSync = true })
	g.fs.SetFault(func(op memfs.Op) memfs.Fault {
		if op.Kind == memfs.OpSync {
			return memfs.Fault{Err: <-g.gate}
		}
		return memfs.Fault{}
	})
}

// open lets all syncs pass from now on.
func (g *gated) open() { close(g.gate) }

// wantSilence fails if c gets anything, or is closed.
func wantSilence(t *testing.T, c *rawClient, who string) {
	t.Helper()
	synctest.Wait()
	c.nc.SetReadDeadline(time.Now().Add(time.Millisecond)) // of the bubble
	defer c.nc.SetReadDeadline(time.Time{})
	if _, err := c.frame(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("%s got something before the sync: error %v", who, err)
	}
}

// wantAnswer reads an answer and fails if it has an error.
func wantAnswer(t *testing.T, c *rawClient) {
	t.Helper()
	if h, _, err := c.next(); err != nil || h.Err != 0 {
		t.Fatalf("answer %v, error %v", h, err)
	}
}

// TestNoOutputBeforeItsSync blocks a sync. Until it ends, no output leaves: the answer to
// the write, the event about it, the answer to a read that saw it, and the server's
// figures. A later write waits for its own sync.
func TestNoOutputBeforeItsSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := behindGate(t)
		g.writer.send(wire.OpCreate, &wire.CreateRequest{Path: "/a", ACL: openACL()})
		wantSilence(t, g.writer, "the writer")
		g.reader.send(wire.OpExists, &wire.ExistsRequest{Path: "/a"})
		wantSilence(t, g.reader, "the reader")
		g.writer.send(wire.OpCreate, &wire.CreateRequest{Path: "/b", ACL: openACL()})
		wantSilence(t, g.writer, "the writer")
		g.gate <- nil
		wantAnswer(t, g.writer)
		wantSilence(t, g.writer, "the writer of a second node")
		stats := make(chan Stats)
		go func() { stats <- g.Stats() }()
		synctest.Wait()
		select {
		case st := <-stats:
			t.Errorf("the server tells of transaction %#x before it is durable", st.Zxid)
		default:
		}
		g.open()
		wantAnswer(t, g.writer)
		wantAnswer(t, g.reader)
		if len(g.reader.events) != 1 || (<-stats).Zxid != g.writer.lastZxid {
			t.Errorf("%d events, want one", len(g.reader.events))
		}
	})
}

// TestReadsDoNotSyncWhenIdle: while no sync runs, reads cause none.
func TestReadsDoNotSyncWhenIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := behindGate(t)
		before := g.fs.Syncs()
		if g.reader.exists("/a") || g.fs.Syncs() != before {
			t.Errorf("a read took %d syncs", g.fs.Syncs()-before)
		}
		g.open() // for the end
	})
}

// TestFailedSyncDropsTheNextBatch fails the first of two syncs: nothing of either batch
// leaves, and later reads see neither.
func TestFailedSyncDropsTheNextBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := behindGate(t)
		g.writer.send(wire.OpCreate, &wire.CreateRequest{Path: "/a", ACL: openACL()})
		synctest.Wait()
		g.reader.send(wire.OpCreate, &wire.CreateRequest{Path: "/b", ACL: openACL()})
		wantSilence(t, g.reader, "the second writer")
		g.gate <- syscall.EIO
		g.open()
		g.writer.wantClosed()
		g.reader.wantClosed()
		c := resume(t, g.Server, g.reader)
		if c.exists("/a") || c.exists("/b") {
			t.Error("there is a node that was never durable")
		}
	})
}

// TestConnectionEndsWaitForTheirSync ends a session, and a connection by its client, during
// a blocked sync: neither closes before its output has left.
func TestConnectionEndsWaitForTheirSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := behindGate(t)
		g.writer.send(wire.OpCreate, &wire.CreateRequest{Path: "/a", ACL: openACL()})
		synctest.Wait()
		g.reader.send(wire.OpCloseSession, nil)
		g.writer.nc.(interface{ CloseWrite() error }).CloseWrite()
		wantSilence(t, g.reader, "who closed its session")
		wantSilence(t, g.writer, "who sends no more")
		g.open()
		wantAnswer(t, g.writer)
		wantAnswer(t, g.reader)
		g.writer.wantClosed()
		g.reader.wantClosed()
	})
}

// TestSlowDiskThrottlesWriters sends more than a batch may contain during a blocked sync:
// the server takes no more than that.
func TestSlowDiskThrottlesWriters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := behindGate(t)
		const each, all = 500_000, 40
		writers := make([]*rawClient, all)
		g.fs.SetFault(nil)
		for i := range writers {
			writers[i] = login(t, g.Server, time.Hour)
		}
		g.shut()
		for i, c := range writers {
			go c.send(wire.OpCreate, &wire.CreateRequest{Path: fmt.Sprintf("/n%d", i), Data: make([]byte, each), ACL: openACL()})
		}
		synctest.Wait()
		// The loop waits for the disk: no other goroutine uses its state.
		if held := g.loop.filling.size; held > roundBytes+3*each {
			t.Errorf("%d bytes wait for a sync, want no more than %d and a request's", held, roundBytes)
		}
		g.open()
		for _, c := range writers {
			wantAnswer(t, c)
		}
	})
}

// TestSlowDiskThrottlesSessionEnd ends a session with long paths during a blocked sync: the
// server removes only a part of the nodes until the disk has caught up.
func TestSlowDiskThrottlesSessionEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := behindGate(t)
		const each, all = 400_000, 30
		g.fs.SetFault(nil)
		owner := login(t, g.Server, time.Hour)
		for i := range all {
			owner.create(fmt.Sprint("/", i, strings.Repeat("x", each)), wire.ModeEphemeral)
		}
		g.shut()
		g.writer.send(wire.OpCreate, &wire.CreateRequest{Path: "/a", ACL: openACL()})
		synctest.Wait()
		before := g.loop.snapshotBytes
		owner.send(wire.OpCloseSession, nil)
		time.Sleep(time.Second) // of the bubble: the parts are due at once
		synctest.Wait()
		// The loop waits for the disk: no other goroutine uses its state.
		if wrote := g.loop.snapshotBytes - before; wrote > roundBytes+3*each {
			t.Errorf("%d bytes wait for a sync, want no more than %d and a part's", wrote, roundBytes)
		}
		g.open()
		wantAnswer(t, g.writer)
		wantAnswer(t, owner)
	})
}

// TestObservedChangesSurviveCrashes has clients that write and clients that read at the
// same time, on a disk that fails at some point and forgets what was not synced. Afterwards
// everything that was acknowledged or read is there.
func TestObservedChangesSurviveCrashes(t *testing.T) {
	overlaps, seen := 0, 0
	for seed := range raceShare(400) {
		synctest.Test(t, func(t *testing.T) {
			o, n := seeAndCrash(t, uint64(seed))
			overlaps += o
			seen += n
		})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Logf("%d nodes were seen, %d batches filled during a sync", seen, overlaps)
	// Whether any are depends on the scheduler: none on one processor, in a bubble. The
	// tests above block a sync and fill a batch meanwhile, on any machine.
	if seen < raceShare(1000) {
		t.Error("the test did too little")
	}
}

// seeAndCrash runs one such server. It returns how often a batch was filled during a sync,
// and how many nodes were acknowledged or read.
func seeAndCrash(t *testing.T, seed uint64) (overlaps, nodes int) {
	opts, fs := onMemory(t, seed)
	opts.SnapshotRecords = 1 << 30 // nobody else uses the disk while it sleeps
	random := rand.New(rand.NewPCG(seed, 5))
	s := start(t, opts)
	const crowd = 6
	clients := make([]*rawClient, crowd)
	for i := range clients {
		clients[i] = login(t, s, time.Hour)
	}
	dies := fs.Ops() + 20 + random.IntN(300)
	fs.SetFault(func(op memfs.Op) memfs.Fault {
		if op.N >= dies {
			return memfs.Fault{Err: syscall.EIO, Keep: random.IntN(200)}
		}
		if op.Kind == memfs.OpSync {
			time.Sleep(time.Duration(random.IntN(3)) * time.Millisecond)
		}
		return memfs.Fault{}
	})
	found := make(chan []string, crowd)
	for i, c := range clients {
		go func() { found <- c.writeAndLook(i) }()
	}
	must := make(map[string]bool)
	for range clients {
		for _, path := range <-found {
			must[path] = true
		}
	}
	s.runOnLoop(func() { overlaps = s.loop.overlaps })
	fs.SetFault(nil)
	s.Close()
	fs.Crash()
	missing(t, login(t, start(t, opts), time.Hour), must, int(seed))
	return overlaps, len(must)
}

// writeAndLook creates nodes, or lists them, until the connection ends, and
// returns those it knows to be there.
func (c *rawClient) writeAndLook(i int) (known []string) {
	for n := 0; ; n++ {
		if i%2 == 0 {
			path := fmt.Sprintf("/c%d-%d", i, n)
			if c.attempt(path) != nil {
				return known
			}
			known = append(known, path)
			continue
		}
		c.xid++
		if _, err := c.nc.Write(wire.AppendRequest(nil, c.xid, wire.OpGetChildren, &wire.GetChildrenRequest{Path: "/"})); err != nil {
			return known
		}
		h, r, err := c.next()
		if err != nil || h.Err != 0 {
			return known
		}
		var resp wire.GetChildrenResponse
		resp.Decode(r)
		known = known[:0]
		for _, name := range resp.Children {
			if name != "zookeeper" {
				known = append(known, "/"+name)
			}
		}
		time.Sleep(100 * time.Microsecond)
	}
}

// TestAbortedSlowReaderIsUnregistered: a client does not read, sends an incomplete frame,
// and disconnects. The server unregisters it, although the loop waited for the client to
// read and the connection's reader had already ended.
func TestAbortedSlowReaderIsUnregistered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := quiet(t)
		opts.Logger = discard()
		s := start(t, opts)
		maker := login(t, s, time.Hour)
		for path, size := range map[string]int{"/some": 200_000, "/much": 900_000} {
			maker.do(wire.OpCreate, &wire.CreateRequest{Path: path, Data: make([]byte, size), ACL: openACL()})
		}
		c := login(t, s, time.Hour)
		// The writer is stuck with little enough for the loop to go on.
		c.send(wire.OpGetData, &wire.GetDataRequest{Path: "/some", Watch: true})
		synctest.Wait()
		for range 3 {
			c.send(wire.OpGetData, &wire.GetDataRequest{Path: "/much", Watch: true})
		}
		c.write([]byte{0xff, 0xff, 0xff, 0xff})
		synctest.Wait()
		if parked, conns := s.parkedAndRead(); parked != 1 || conns != 2 {
			t.Fatalf("the loop waits for %d of %d connections to read what they asked for", parked, conns)
		}
		c.nc.Close()
		synctest.Wait()
		if _, conns := s.parkedAndRead(); conns != 1 || s.Stats().Watches != 0 {
			t.Errorf("%d connections and %d watches are left", conns, s.Stats().Watches)
		}
	})
}

// parkedAndRead is how many connections the loop has, and how many of them wait
// for their clients to read and have read all that these sent.
func (s *Server) parkedAndRead() (parked, conns int) {
	s.runOnLoop(func() {
		for _, c := range s.loop.conns {
			c.mu.Lock()
			if c.output == outputBlocked && c.readDone {
				parked++
			}
			c.mu.Unlock()
		}
		conns = len(s.loop.conns)
	})
	return parked, conns
}

// TestStatsOmitLostBatch: the figures do not contain changes of a batch that could not be
// written, also the last figures of a server that ends at once.
func TestStatsOmitLostBatch(t *testing.T) {
	for _, ends := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			opts, fs := onMemory(t, 41)
			opts.EndOnStorageError = ends
			s := start(t, opts)
			c := login(t, s, time.Hour)
			c.create("/kept", wire.ModePersistent)
			before := s.Stats()
			breakDisk(fs, memfs.OpSync, syscall.EIO)
			if err := c.attempt("/lost"); !closedError(err) {
				t.Fatalf("a write to a sick disk: %v", err)
			}
			synctest.Wait()
			after := s.Stats()
			if after.Zxid != before.Zxid || after.Nodes != before.Nodes || after.StorageError == "" {
				t.Errorf("ends %v: zxid %#x and %d nodes, before it was %#x and %d; %q",
					ends, after.Zxid, after.Nodes, before.Zxid, before.Nodes, after.StorageError)
			}
			if ended := isClosed(s.Done()); ended != ends {
				t.Errorf("ended: %v, want %v", ended, ends)
			}
		})
	}
}
