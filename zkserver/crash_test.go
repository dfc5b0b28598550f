package zkserver

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/internal/wal/memfs"
	"github.com/zklock/zklock/internal/wire"
)

var (
	crashCycles = flag.Int("crash.cycles", 200, "number of crashes")
	crashSeed   = flag.Uint64("crash.seed", 1, "seed of requests and faults")
)

// crashTest is a server that crashes repeatedly, and its clients.
type crashTest struct {
	t       *testing.T
	rng     *rand.Rand
	fs      *memfs.FS
	opts    Options
	ledger  *ledger
	stopped atomic.Bool // the clients stop

	started     time.Time // when the server of this cycle started
	clients     []*crashClient
	clientsMade int

	mu         sync.Mutex
	violations []string

	closed                                                                       atomic.Int64
	powerLosses, kills, recoveryKills, writeFaults, readOnly, shutdowns, expired int
	snapshots, failed                                                            int64
}

// TestCrashCycles lets the disk fail at random operations of the log, a snapshot, or recovery,
// while clients work. Then it kills the server, with or without a loss of power. No acknowledged
// change may be lost, and no unacknowledged one may appear in part or twice. No session may end
// before its timeout or exist after it. Transaction ids and sequence numbers must not repeat.
func TestCrashCycles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCrashTest(t, *crashSeed, func(*Options) {})
		cycles := raceShare(*crashCycles)
		for cycle := range cycles {
			w.cycle()
			if len(w.violations) > 0 {
				t.Fatalf("cycle %d of seed %d: %s", cycle, *crashSeed, strings.Join(w.violations, "\n"))
			}
		}
		w.report(cycles)
	})
}

// TestCrashCyclesDetectMissingSync runs a server that does not sync: the ledger must detect the
// losses.
func TestCrashCyclesDetectMissingSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCrashTest(t, 3, func(o *Options) { o.NoSync = true })
		for range 100 {
			if w.cycle(); len(w.violations) > 0 {
				t.Logf("found: %s", w.violations[0])
				return
			}
		}
		t.Error("a server that syncs nothing lost nothing")
	})
}

func newCrashTest(t *testing.T, seed uint64, edit func(*Options)) *crashTest {
	w := &crashTest{t: t, rng: rand.New(rand.NewPCG(seed, 1)), ledger: newLedger()}
	w.opts, w.fs = onMemory(t, seed)
	w.opts.SnapshotRecords, w.opts.SnapshotsKept = 60, 2
	w.opts.segmentBytes = 4096
	edit(&w.opts)
	s := w.start()
	c := &crashClient{w: w, rng: w.rng, name: "first"}
	must(t, c.connect(s))
	for _, path := range []string{"/n", "/q"} {
		if _, err := c.ask(wire.OpCreate, &wire.CreateRequest{Path: path, ACL: openACL()}, new(wire.CreateResponse)); err != nil {
			t.Fatal(err)
		}
	}
	_ = c.closeSession()
	s.Close()
	return w
}

// failf records a violation.
func (w *crashTest) failf(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.violations = append(w.violations, fmt.Sprintf(format, args...))
}

// withLedger runs f under the ledger's lock.
func (w *crashTest) withLedger(f func()) {
	w.ledger.mu.Lock()
	defer w.ledger.mu.Unlock()
	f()
}

// start starts a server. Sometimes it first crashes the server repeatedly during recovery.
func (w *crashTest) start() *Server {
	for w.rng.IntN(4) == 0 {
		w.fs.FailAt(w.rng.IntN(60), errors.New("power lost"), w.rng.IntN(600))
		if s, err := New(&w.opts); err == nil {
			s.Close()
		}
		w.recoveryKills++
		w.loseProcess()
	}
	s, err := New(&w.opts)
	if err != nil {
		w.failf("cannot start: %v", err)
		return nil
	}
	w.started = time.Now()
	return s
}

// loseProcess changes the disk like the death of the process or a loss of power does.
func (w *crashTest) loseProcess() {
	w.fs.SetFault(nil)
	if w.rng.IntN(3) == 0 {
		w.kills++
		w.fs.Restart()
		return
	}
	w.powerLosses++
	w.fs.Crash()
}

// cycle runs the server once, from its start to its end.
func (w *crashTest) cycle() {
	s := w.start()
	if s == nil {
		return
	}
	if w.checkState(s); len(w.violations) > 0 {
		s.Close()
		return
	}
	w.replaceClients()
	w.stopped.Store(false)
	var all sync.WaitGroup
	for _, c := range w.clients {
		all.Go(func() { // until the server's end closes the connection
			if err := c.work(s); err != nil && err != errLost {
				w.failf("%v", err)
			}
		})
	}
	if w.rng.IntN(8) == 0 {
		w.checkExpiry(s)
	}
	failed, writesOnly := w.scheduleFault()
	select {
	case <-failed:
	case <-time.After(time.Duration(w.rng.IntN(2000)) * time.Millisecond):
	}
	if writesOnly {
		// Only writes fail: clients reconnect and find a read-only server.
		synctest.Wait()
		// A client that connected late is already on the read-only server, and would not end.
		w.stopped.Store(true)
		all.Wait()
		if s.Stats().ReadOnly {
			w.readOnly++
			w.resumeClients(s)
		}
	}
	w.stopped.Store(true)
	end := s.Close
	if w.rng.IntN(10) == 0 {
		w.shutdowns++
		end = func() error { return s.Shutdown(w.t.Context()) }
	}
	if err := end(); err != nil {
		w.failf("closing the server: %v", err)
	}
	all.Wait()
	st := s.Stats()
	w.snapshots += st.SnapshotsWritten
	w.failed += st.SnapshotsFailed
	w.markExpirable(time.Now())
	w.loseProcess()
	if w.rng.IntN(4) == 0 {
		time.Sleep(time.Duration(w.rng.IntN(10_000)) * time.Millisecond)
	}
}

// replaceClients lets some clients leave without closing their sessions, and replaces clients
// that left.
func (w *crashTest) replaceClients() {
	w.clients = slices.DeleteFunc(w.clients, func(c *crashClient) bool {
		if c.session != nil && !c.session.left && w.rng.IntN(12) == 0 {
			c.session.left = true
		}
		return c.session != nil && c.session.left
	})
	for len(w.clients) < 4 {
		w.clientsMade++
		w.clients = append(w.clients, &crashClient{w: w, rng: rand.New(rand.NewPCG(*crashSeed, uint64(w.clientsMade))), name: fmt.Sprintf("c%d", w.clientsMade)})
	}
}

// scheduleFault chooses a disk operation. From it on, all operations fail, or all except reads
// if writesOnly. At that operation it closes failed.
func (w *crashTest) scheduleFault() (failed chan struct{}, writesOnly bool) {
	failed = make(chan struct{})
	writesOnly = w.rng.IntN(6) == 0
	at, keep := w.fs.Ops()+w.rng.IntN(1+w.rng.IntN(300)), w.rng.IntN(700)
	if writesOnly {
		w.writeFaults++
	}
	hit := false
	w.fs.SetFault(func(op memfs.Op) memfs.Fault {
		reads := op.Kind == memfs.OpRead || op.Kind == memfs.OpOpen || op.Kind == memfs.OpSize || op.Kind == memfs.OpReadDir || op.Kind == memfs.OpClose
		if op.N < at || writesOnly && reads {
			return memfs.Fault{}
		}
		first := !hit
		if first {
			hit = true
			close(failed)
			return memfs.Fault{Err: syscall.EIO, Keep: keep}
		}
		return memfs.Fault{Err: syscall.EIO}
	})
	return failed, writesOnly
}

// resumeClients lets the clients reconnect to a server that has become read-only.
func (w *crashTest) resumeClients(s *Server) {
	var all sync.WaitGroup
	w.stopped.Store(false)
	for _, c := range w.clients {
		if c.session == nil || c.session.left {
			continue
		}
		all.Go(func() { // until stopped
			if err := c.work(s); err != nil && err != errLost {
				w.failf("read-only: %v", err)
			}
		})
	}
	// This can exceed every session timeout, but no session may end here.
	time.Sleep(time.Duration(100+w.rng.IntN(9000)) * time.Millisecond)
	w.stopped.Store(true)
	all.Wait()
}

// checkExpiry runs the server for longer than any session timeout. Then it checks that the
// sessions without clients have ended.
func (w *crashTest) checkExpiry(s *Server) {
	time.Sleep(7500 * time.Millisecond)
	expired := w.expiredNodes()
	c := &crashClient{w: w, rng: w.rng, name: "observer"}
	if err := c.connect(s); err != nil {
		w.failf("observer: %v", err)
		return
	}
	defer c.nc.Close()
	for path, t := range expired {
		f, err := c.read(path)
		if err != nil {
			w.failf("observer: %v", err)
		}
		if f.exists {
			w.failf("%s still exists, %v after its session's last request and %v after the server's start", path, time.Since(t.sent), time.Since(w.started))
		}
	}
	_ = c.closeSession()
}

// expiredNodes marks the sessions that must have expired as ended, and returns their ephemeral
// nodes.
func (w *crashTest) expiredNodes() map[string]*sessionRecord {
	b := w.ledger
	b.mu.Lock()
	defer b.mu.Unlock()
	expired := make(map[string]*sessionRecord)
	for _, t := range b.sessions {
		if t.left && !t.ended && time.Since(later(w.started, t.sent)) > t.timeout+100*time.Millisecond {
			t.closed, t.ended = deletes, true
			w.expired++
		}
	}
	for path, p := range b.paths {
		if t := b.sessions[p.owner]; p.owner != 0 && t.ended {
			expired[path] = t
		}
	}
	return expired
}

// markExpirable marks the sessions that may have expired when the server ends. All others must
// exist at the next start.
func (w *crashTest) markExpirable(now time.Time) {
	b := w.ledger
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, t := range b.sessions {
		if t.left && t.closed == none && now.Sub(later(w.started, t.heard)) >= t.timeout {
			t.closed = deletes
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// checkState compares the ledger with a server that has no other clients.
func (w *crashTest) checkState(s *Server) {
	w.fs.SetFault(nil)
	c := &crashClient{w: w, rng: w.rng, name: "checker"}
	if err := c.connect(s); err != nil {
		w.failf("check: %v", err)
		return
	}
	defer c.nc.Close()
	seen, err := c.readNodes()
	if err == nil {
		err = c.deleteSequential()
	}
	if err == nil && s.loop.tree.Zxid() < w.ledger.topZxid { // no other client is connected
		err = fmt.Errorf("transaction %#x after %#x was acknowledged", s.loop.tree.Zxid(), w.ledger.topZxid)
	}
	if err != nil {
		w.failf("check: %v", err)
		return
	}
	w.withLedger(func() {
		for path, p := range w.ledger.paths {
			a, b := seen[path], seen[p.twin]
			if p.pending == creates && p.twin != "" && (a.exists != b.exists || a.czxid != b.czxid) {
				w.failf("a multi was applied in part: %s is %+v and %s is %+v", path, a, p.twin, b)
			}
		}
		for path := range w.ledger.paths {
			if _, ok := seen[path]; !ok {
				seen[path] = nodeState{}
			}
		}
		for path, f := range seen {
			if err := w.ledger.observed(path, f); err != nil {
				w.failf("check: %v", err)
			}
		}
	})
	if err := c.deleteLeftovers(); err != nil {
		w.failf("check: %v", err)
	}
	if err := c.closeSession(); err != errLost || !c.session.ended {
		w.failf("check: closing: %v", err)
	}
	w.forgetSessions()
}

// forgetSessions drops the sessions that have ended and have no nodes.
func (w *crashTest) forgetSessions() {
	w.withLedger(func() {
		used := make(map[int64]bool)
		for _, p := range w.ledger.paths {
			used[p.owner] = true
		}
		for id, t := range w.ledger.sessions {
			if t.ended && !used[id] {
				delete(w.ledger.sessions, id)
			}
		}
	})
}

// deleteLeftovers deletes the nodes of clients that left, except ephemeral nodes: the end of
// their sessions deletes these.
func (c *crashClient) deleteLeftovers() error {
	current := make(map[string]bool)
	for _, other := range c.w.clients {
		current[other.name] = true
	}
	c.paths = nil
	c.w.withLedger(func() {
		for path, p := range c.w.ledger.paths {
			name, _, _ := strings.Cut(strings.TrimPrefix(path, "/n/"), "-")
			if p.owner == 0 && !current[name] {
				c.paths = append(c.paths, path)
			}
		}
	})
	slices.Sort(c.paths) // the order of the map is random
	for _, path := range slices.Clone(c.paths) {
		if err := c.remove(path); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

// readNodes reads all nodes of the clients.
func (c *crashClient) readNodes() (map[string]nodeState, error) {
	var resp wire.GetChildrenResponse
	if _, err := c.ask(wire.OpGetChildren, &wire.GetChildrenRequest{Path: "/n"}, &resp); err != nil {
		return nil, err
	}
	seen := make(map[string]nodeState)
	for _, name := range resp.Children {
		f, err := c.read("/n/" + name)
		if err != nil {
			return nil, err
		}
		seen["/n/"+name] = f
	}
	return seen, nil
}

// deleteSequential records the sequential nodes whose creator got no answer, and deletes them.
func (c *crashClient) deleteSequential() error {
	var resp wire.GetChildrenResponse
	if _, err := c.ask(wire.OpGetChildren, &wire.GetChildrenRequest{Path: "/q"}, &resp); err != nil {
		return err
	}
	for _, name := range resp.Children {
		path := "/q/" + name
		if err := c.w.recordNumber(path); err != nil {
			return err
		}
		if _, err := c.ask(wire.OpDelete, &wire.DeleteRequest{Path: path, Version: -1}, new(wire.Empty)); err != nil {
			return err
		}
	}
	return nil
}

// recordNumber records a number unless the ledger has it for the same path.
func (w *crashTest) recordNumber(path string) (err error) {
	w.withLedger(func() {
		var n int
		if _, err = fmt.Sscanf(path[strings.LastIndexByte(path, '-')+1:], "%d", &n); err == nil && w.ledger.numbers[n] != path {
			_, err = w.ledger.recordNumber(path)
		}
	})
	return err
}

// report logs what happened, and fails if it was too little.
func (w *crashTest) report(cycles int) {
	b := w.ledger
	w.t.Logf("%d cycles: %d losses of power, %d kills, %d of them in recovery, %d disks that failed for writes (%d servers continued read-only), %d shutdowns",
		cycles, w.powerLosses, w.kills, w.recoveryKills, w.writeFaults, w.readOnly, w.shutdowns)
	w.t.Logf("%d changes acknowledged, %d requests without an answer, %d sequence numbers, %d sessions closed, %d expired, %d snapshots, %d failed",
		b.acknowledged, b.unknown, len(b.numbers), w.closed.Load(), w.expired, w.snapshots, w.failed)
	if cycles >= 300 && (b.acknowledged < 20*cycles || b.unknown < cycles/4 || w.expired < cycles/100 || w.readOnly < cycles/50 || w.snapshots < int64(cycles/4)) {
		w.t.Error("the test did too little")
	}
}
