package zkserver

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/internal/wal/memfs"
	"github.com/zklock/zklock/internal/wire"
)

// gated is a server, and a writer and a reader, who watches the root's children,
// on a disk whose syncs wait for gate and give what comes through it. The loop
// leaves syncs to the syncer, as with a crowd of clients.
type gated struct {
	*Server
	fs             *memfs.FS
	gate           chan error
	writer, reader *raw
}

func behindGate(t *testing.T) *gated {
	opts, fs := onMemory(t, 61)
	opts.Logger = discard()
	g := &gated{Server: start(t, opts), fs: fs, gate: make(chan error)}
	g.writer, g.reader = login(t, g.Server, time.Hour), login(t, g.Server, time.Hour)
	g.reader.do(wire.OpGetChildren, &wire.GetChildrenRequest{Path: "/", Watch: true})
	g.shut()
	return g
}

// shut has syncs wait from now on.
func (g *gated) shut() {
	g.ask(func() { g.loop.crowded = true })
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
func wantSilence(t *testing.T, c *raw, who string) {
	t.Helper()
	synctest.Wait()
	c.nc.SetReadDeadline(time.Now().Add(time.Millisecond)) // of the bubble
	defer c.nc.SetReadDeadline(time.Time{})
	if _, err := c.frame(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("%s got something before the sync: error %v", who, err)
	}
}

// wantAnswer takes an answer without an error, or fails.
func wantAnswer(t *testing.T, c *raw) {
	t.Helper()
	if h, _, err := c.next(); err != nil || h.Err != 0 {
		t.Fatalf("answer %v, error %v", h, err)
	}
}

// TestNothingLeavesBeforeItsSync holds a sync up: the answer to the write, the
// event that tells of it, the answer to a read that saw it, and what the server
// says of itself have to wait. A write behind it waits for a sync of its own.
func TestNothingLeavesBeforeItsSync(t *testing.T) {
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

// TestReadsWaitForNobodyAtRest has no sync under way: reads cost none.
func TestReadsWaitForNobodyAtRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := behindGate(t)
		before := g.fs.Syncs()
		if g.reader.exists("/a") || g.fs.Syncs() != before {
			t.Errorf("a read took %d syncs", g.fs.Syncs()-before)
		}
		g.open() // for the end
	})
}

// TestFailedSyncTakesBackWhatWasBehindIt fails the first of two syncs: nothing of
// either batch leaves, and what is read afterwards has neither.
func TestFailedSyncTakesBackWhatWasBehindIt(t *testing.T) {
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

// TestEndsWaitForTheirSync ends a session, and a connection by its client, while
// a sync is held up: neither closes before what it was to be told has left.
func TestEndsWaitForTheirSync(t *testing.T) {
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

// TestSlowDiskHoldsWritersBack sends more than a batch may have while a sync is
// held up: the server takes no more than that.
func TestSlowDiskHoldsWritersBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := behindGate(t)
		const each, all = 500_000, 40
		writers := make([]*raw, all)
		g.fs.SetFault(nil)
		for i := range writers {
			writers[i] = login(t, g.Server, time.Hour)
		}
		g.shut()
		for i, c := range writers {
			go c.send(wire.OpCreate, &wire.CreateRequest{Path: fmt.Sprintf("/n%d", i), Data: make([]byte, each), ACL: openACL()})
		}
		synctest.Wait()
		// The loop waits for the disk: nobody else looks at what is its own.
		if held := g.loop.filling.size; held > roundBytes+3*each {
			t.Errorf("%d bytes wait for a sync, want no more than %d and a request's", held, roundBytes)
		}
		g.open()
		for _, c := range writers {
			wantAnswer(t, c)
		}
	})
}

// TestNothingSeenIsUndone has clients that write and others that read, at the same
// time, on a disk that fails at some moment and forgets what was not synced. Not
// only what was acknowledged is there afterwards, but also what anybody saw.
func TestNothingSeenIsUndone(t *testing.T) {
	overlaps, seen := 0, 0
	for seed := range scale(400, 40) {
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
	// Whether any are is the scheduler's matter: none on one processor, in a bubble. The
	// tests above hold a sync up and fill a batch meanwhile, on any machine.
	if seen < 1000 {
		t.Error("the test did too little")
	}
}

// seeAndCrash is one such life. It returns how often a batch was filled while
// another was synced, and how many nodes were acknowledged or seen.
func seeAndCrash(t *testing.T, seed uint64) (overlaps, nodes int) {
	opts, fs := onMemory(t, seed)
	opts.Logger = discard()
	opts.SnapshotRecords = 1 << 30 // nobody else uses the disk while it sleeps
	random := rand.New(rand.NewPCG(seed, 5))
	s := start(t, opts)
	const crowd = 6
	clients := make([]*raw, crowd)
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
	s.ask(func() { overlaps = s.loop.overlaps })
	fs.SetFault(nil)
	s.Close()
	fs.Crash()
	missing(t, login(t, start(t, opts), time.Hour), must, int(seed))
	return overlaps, len(must)
}

// writeAndLook creates nodes, or lists them, until the connection ends, and
// returns those it knows to be there.
func (c *raw) writeAndLook(i int) (known []string) {
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
