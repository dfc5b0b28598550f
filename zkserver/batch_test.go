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

// gatedServer is a server with a writer, and a reader that watches the root's children. On its
// disk, a sync waits for a receive from gate and returns what it receives. The loop leaves syncs
// to the syncer, as with many clients.
type gatedServer struct {
	*Server
	fs             *memfs.FS
	gate           chan error
	writer, reader *rawClient
}

func newGatedServer(t *testing.T) *gatedServer {
	opts, fs := onMemory(t, 61)
	g := &gatedServer{Server: start(t, opts), fs: fs, gate: make(chan error)}
	g.writer, g.reader = login(t, g.Server, time.Hour), login(t, g.Server, time.Hour)
	g.reader.do(wire.OpGetChildren, &wire.GetChildrenRequest{Path: "/", Watch: true})
	g.blockSyncs()
	return g
}

func (g *gatedServer) blockSyncs() {
	g.runOnLoop(func() { g.loop.busyDuringSync = true })
	g.fs.SetFault(func(op memfs.Op) memfs.Fault {
		if op.Kind == memfs.OpSync {
			return memfs.Fault{Err: <-g.gate}
		}
		return memfs.Fault{}
	})
}

// unblockSyncs lets all blocked and later syncs succeed.
func (g *gatedServer) unblockSyncs() { close(g.gate) }

// wantSilence fails if c gets data, or if the server closes it.
func wantSilence(t *testing.T, c *rawClient, client string) {
	t.Helper()
	synctest.Wait()
	c.nc.SetReadDeadline(time.Now().Add(time.Millisecond)) // of the bubble
	defer c.nc.SetReadDeadline(time.Time{})
	if _, err := c.frame(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("%s got something before the sync: error %v", client, err)
	}
}

// wantAnswer reads an answer and fails if it has an error.
func wantAnswer(t *testing.T, c *rawClient) {
	t.Helper()
	if h, _, err := c.next(); err != nil || h.Err != 0 {
		t.Fatalf("answer %v, error %v", h, err)
	}
}

// TestNoOutputBeforeItsSync blocks a sync. Until it ends, the server sends no output: no answer
// to the write, no event about it, no answer to a read that saw it, and no figures. A later
// write waits for its own sync.
func TestNoOutputBeforeItsSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGatedServer(t)
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
		g.unblockSyncs()
		wantAnswer(t, g.writer)
		wantAnswer(t, g.reader)
		if len(g.reader.events) != 1 || (<-stats).Zxid != g.writer.lastZxid {
			t.Errorf("%d events, want one", len(g.reader.events))
		}
	})
}

// TestReadsDoNotSyncWhenIdle checks that a read causes no sync while none is running.
func TestReadsDoNotSyncWhenIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGatedServer(t)
		before := g.fs.Syncs()
		if g.reader.exists("/a") || g.fs.Syncs() != before {
			t.Errorf("a read took %d syncs", g.fs.Syncs()-before)
		}
		g.unblockSyncs() // for Close
	})
}

// TestFailedSyncDropsTheNextBatch fails the first of two syncs. The server sends no output of
// either batch, and later reads see neither.
func TestFailedSyncDropsTheNextBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGatedServer(t)
		g.writer.send(wire.OpCreate, &wire.CreateRequest{Path: "/a", ACL: openACL()})
		synctest.Wait()
		g.reader.send(wire.OpCreate, &wire.CreateRequest{Path: "/b", ACL: openACL()})
		wantSilence(t, g.reader, "the second writer")
		g.gate <- syscall.EIO
		g.unblockSyncs()
		g.writer.wantClosed()
		g.reader.wantClosed()
		c := resume(t, g.Server, g.reader)
		if c.exists("/a") || c.exists("/b") {
			t.Error("there is a node that was never durable")
		}
	})
}

// TestConnectionEndsWaitForTheirSync: during a blocked sync, one client closes its session, and
// another its sending side. The server closes neither connection before it has sent the output.
func TestConnectionEndsWaitForTheirSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGatedServer(t)
		g.writer.send(wire.OpCreate, &wire.CreateRequest{Path: "/a", ACL: openACL()})
		synctest.Wait()
		g.reader.send(wire.OpCloseSession, nil)
		g.writer.nc.(interface{ CloseWrite() error }).CloseWrite()
		wantSilence(t, g.reader, "the client that closed its session")
		wantSilence(t, g.writer, "the client that closed its sending side")
		g.unblockSyncs()
		wantAnswer(t, g.writer)
		wantAnswer(t, g.reader)
		g.writer.wantClosed()
		g.reader.wantClosed()
	})
}

// TestSlowDiskThrottlesWriters: during a blocked sync, clients send more than a batch may
// contain. The server stops reading at that size.
func TestSlowDiskThrottlesWriters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGatedServer(t)
		const each, all = 500_000, 40
		writers := make([]*rawClient, all)
		g.fs.SetFault(nil)
		for i := range writers {
			writers[i] = login(t, g.Server, time.Hour)
		}
		g.blockSyncs()
		for i, c := range writers {
			go c.send(wire.OpCreate, &wire.CreateRequest{Path: fmt.Sprintf("/n%d", i), Data: make([]byte, each), ACL: openACL()})
		}
		synctest.Wait()
		// The loop waits for the disk: no other goroutine uses its state.
		if held := g.loop.filling.size; held > roundBytes+3*each {
			t.Errorf("%d bytes wait for a sync, want no more than %d and a request's", held, roundBytes)
		}
		g.unblockSyncs()
		for _, c := range writers {
			wantAnswer(t, c)
		}
	})
}

// TestSlowDiskThrottlesSessionEnd ends a session with long paths during a blocked sync. The
// server deletes only some of the nodes until the sync ends.
func TestSlowDiskThrottlesSessionEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGatedServer(t)
		const each, all = 400_000, 30
		g.fs.SetFault(nil)
		owner := login(t, g.Server, time.Hour)
		for i := range all {
			owner.create(fmt.Sprint("/", i, strings.Repeat("x", each)), wire.ModeEphemeral)
		}
		g.blockSyncs()
		g.writer.send(wire.OpCreate, &wire.CreateRequest{Path: "/a", ACL: openACL()})
		synctest.Wait()
		before := g.loop.snapshotBytes
		owner.send(wire.OpCloseSession, nil)
		time.Sleep(time.Second) // in the bubble: all parts are due
		synctest.Wait()
		// The loop waits for the disk: no other goroutine uses its state.
		if wrote := g.loop.snapshotBytes - before; wrote > roundBytes+3*each {
			t.Errorf("%d bytes wait for a sync, want no more than %d and a part's", wrote, roundBytes)
		}
		g.unblockSyncs()
		wantAnswer(t, g.writer)
		wantAnswer(t, owner)
	})
}

// TestObservedChangesSurviveCrashes: clients write and read at the same time. The disk fails at
// some operation and loses what was not synced. After a restart, every node that was
// acknowledged or read still exists.
func TestObservedChangesSurviveCrashes(t *testing.T) {
	overlaps, seen := 0, 0
	for seed := range raceShare(400) {
		synctest.Test(t, func(t *testing.T) {
			o, n := runUntilDiskFails(t, uint64(seed))
			overlaps += o
			seen += n
		})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Logf("%d nodes were seen, %d batches filled during a sync", seen, overlaps)
	// The number of batches depends on the scheduler: it is 0 on one processor. The
	// tests above block a sync and fill a batch meanwhile, on any machine.
	if seen < raceShare(1000) {
		t.Error("the test did too little")
	}
}

// runUntilDiskFails runs one such server. It returns how often a batch was filled during a sync,
// and how many nodes were acknowledged or read.
func runUntilDiskFails(t *testing.T, seed uint64) (overlaps, nodes int) {
	opts, fs := onMemory(t, seed)
	opts.SnapshotRecords = 1 << 30 // only the log uses the disk while it sleeps
	random := rand.New(rand.NewPCG(seed, 5))
	s := start(t, opts)
	const clientCount = 6
	clients := make([]*rawClient, clientCount)
	for i := range clients {
		clients[i] = login(t, s, time.Hour)
	}
	failAt := fs.Ops() + 20 + random.IntN(300)
	fs.SetFault(func(op memfs.Op) memfs.Fault {
		if op.N >= failAt {
			return memfs.Fault{Err: syscall.EIO, Keep: random.IntN(200)}
		}
		if op.Kind == memfs.OpSync {
			time.Sleep(time.Duration(random.IntN(3)) * time.Millisecond)
		}
		return memfs.Fault{}
	})
	found := make(chan []string, clientCount)
	for i, c := range clients {
		go func() { found <- c.writeOrList(i) }()
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
	wantAcknowledged(t, login(t, start(t, opts), time.Hour), must, int(seed))
	return overlaps, len(must)
}

// writeOrList creates or lists nodes until the connection ends, and returns the nodes that it
// knows to exist.
func (c *rawClient) writeOrList(i int) (known []string) {
	for n := 0; ; n++ {
		if i%2 == 0 {
			path := fmt.Sprintf("/c%d-%d", i, n)
			if c.tryCreate(path) != nil {
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

// TestAbortedSlowReaderIsUnregistered: a client does not read, sends an incomplete frame, and
// disconnects. The server unregisters it, although the loop waited for the client to read, and
// the connection's reader had already ended.
func TestAbortedSlowReaderIsUnregistered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := testOptions(t)
		opts.Logger = discard()
		s := start(t, opts)
		writer := login(t, s, time.Hour)
		for path, size := range map[string]int{"/some": 200_000, "/much": 900_000} {
			writer.do(wire.OpCreate, &wire.CreateRequest{Path: path, Data: make([]byte, size), ACL: openACL()})
		}
		c := login(t, s, time.Hour)
		// The writer blocks with less output than makes the loop wait.
		c.send(wire.OpGetData, &wire.GetDataRequest{Path: "/some", Watch: true})
		synctest.Wait()
		for range 3 {
			c.send(wire.OpGetData, &wire.GetDataRequest{Path: "/much", Watch: true})
		}
		c.write([]byte{0xff, 0xff, 0xff, 0xff})
		synctest.Wait()
		if blocked, conns := s.countBlocked(); blocked != 1 || conns != 2 {
			t.Fatalf("the loop waits for %d of %d connections to read what they asked for", blocked, conns)
		}
		c.nc.Close()
		synctest.Wait()
		if _, conns := s.countBlocked(); conns != 1 || s.Stats().Watches != 0 {
			t.Errorf("%d connections and %d watches are left", conns, s.Stats().Watches)
		}
	})
}

// countBlocked returns the number of connections of the loop, and how many of them are blocked
// because their clients do not read, after the server has read all that these sent.
func (s *Server) countBlocked() (blocked, conns int) {
	s.runOnLoop(func() {
		for _, c := range s.loop.conns {
			c.mu.Lock()
			if c.output == outputBlocked && c.readDone {
				blocked++
			}
			c.mu.Unlock()
		}
		conns = len(s.loop.conns)
	})
	return blocked, conns
}

// TestStatsOmitLostBatch checks that the figures do not include a batch that could not be
// written, even if the server ends immediately.
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
			if err := c.tryCreate("/lost"); !closedError(err) {
				t.Fatalf("a write to a failed disk: %v", err)
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
