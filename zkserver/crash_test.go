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
	crashCycles = flag.Int("crash.cycles", 200, "how often the server is killed")
	crashSeed   = flag.Uint64("crash.seed", 1, "seed of changes, moments and losses")
)

// crashes is a server that crashes repeatedly, and its clients.
type crashes struct {
	t     *testing.T
	rng   *rand.Rand
	fs    *memfs.FS
	opts  Options
	books *ledger
	over  atomic.Bool // the clients stop

	started time.Time // when the server of this cycle began to serve
	clients []*crashClient
	named   int

	mu    sync.Mutex
	wrong []string // the promises that were broken

	closed                                                             atomic.Int64
	losses, kills, recovering, sick, readOnly, graceful, expired, idle int
	snapshots, failed                                                  int64
}

// TestCrashCycles kills the server at any operation of its disk, be it the
// log's, a snapshot's, or recovery's, with and without a loss of power, while clients
// work; lets the disk alone fail at times; and sees to it that nothing
// acknowledged is ever lost, nothing unacknowledged comes in part or twice, no
// session ends before its time nor outlives it, and transaction ids and sequence
// numbers never come back.
func TestCrashCycles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCrashes(t, *crashSeed, func(*Options) {})
		cycles := raceShare(*crashCycles)
		for cycle := range cycles {
			w.cycle()
			if len(w.wrong) > 0 {
				t.Fatalf("cycle %d of seed %d: %s", cycle, *crashSeed, strings.Join(w.wrong, "\n"))
			}
		}
		w.report(cycles)
	})
}

// TestCrashCyclesDetectMissingSync runs the same with a server that does not sync: the
// ledger must detect the losses.
func TestCrashCyclesDetectMissingSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCrashes(t, 3, func(o *Options) { o.NoSync = true })
		for range 100 {
			if w.cycle(); len(w.wrong) > 0 {
				t.Logf("found: %s", w.wrong[0])
				return
			}
		}
		t.Error("a server that syncs nothing lost nothing")
	})
}

func newCrashes(t *testing.T, seed uint64, edit func(*Options)) *crashes {
	w := &crashes{t: t, rng: rand.New(rand.NewPCG(seed, 1)), books: newLedger()}
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
	_ = c.quit()
	s.Close()
	return w
}

// failf records a violation.
func (w *crashes) failf(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wrong = append(w.wrong, fmt.Sprintf(format, args...))
}

// note runs f under the ledger's lock.
func (w *crashes) note(f func()) {
	w.books.mu.Lock()
	defer w.books.mu.Unlock()
	f()
}

// start starts a server. Sometimes it is killed repeatedly while it recovers.
func (w *crashes) start() *Server {
	for w.rng.IntN(4) == 0 {
		w.fs.FailAt(w.rng.IntN(60), errors.New("power lost"), w.rng.IntN(600))
		if s, err := New(&w.opts); err == nil {
			s.Close()
		}
		w.recovering++
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

// loseProcess changes the disk as the death of the process or a power loss does.
func (w *crashes) loseProcess() {
	w.fs.SetFault(nil)
	if w.rng.IntN(3) == 0 {
		w.kills++
		w.fs.Restart()
		return
	}
	w.losses++
	w.fs.Crash()
}

// cycle runs the server once, from its start to its end.
func (w *crashes) cycle() {
	s := w.start()
	if s == nil {
		return
	}
	if w.audit(s); len(w.wrong) > 0 {
		s.Close()
		return
	}
	w.replaceClients()
	w.over.Store(false)
	var all sync.WaitGroup
	for _, c := range w.clients {
		all.Go(func() { // until the connection is lost, which the server's end does
			if err := c.work(s); err != nil && err != errLost {
				w.failf("%v", err)
			}
		})
	}
	if w.rng.IntN(8) == 0 {
		w.quiet(s)
	}
	dead, gentle := w.scheduleFault()
	select {
	case <-dead:
	case <-time.After(time.Duration(w.rng.IntN(2000)) * time.Millisecond):
	}
	if gentle {
		// Only writes fail: clients reconnect and find a read-only server.
		synctest.Wait()
		// Who came late is a guest of a read-only server already, and would stay.
		w.over.Store(true)
		all.Wait()
		if s.Stats().ReadOnly {
			w.readOnly++
			w.resumeClients(s)
		}
	}
	w.over.Store(true)
	end := s.Close
	if w.rng.IntN(10) == 0 {
		w.graceful++
		end = func() error { return s.Shutdown(w.t.Context()) }
	}
	if err := end(); err != nil {
		w.failf("the end: %v", err)
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

// replaceClients makes up for clients that left, and lets some leave: their sessions are
// to end by their time.
func (w *crashes) replaceClients() {
	w.clients = slices.DeleteFunc(w.clients, func(c *crashClient) bool {
		if c.ticket != nil && !c.ticket.left && w.rng.IntN(12) == 0 {
			c.ticket.left = true
		}
		return c.ticket != nil && c.ticket.left
	})
	for len(w.clients) < 4 {
		w.named++
		w.clients = append(w.clients, &crashClient{w: w, rng: rand.New(rand.NewPCG(*crashSeed, uint64(w.named))), name: fmt.Sprintf("c%d", w.named)})
	}
}

// scheduleFault chooses the disk operation from which on all operations fail, or, gently,
// all writes. dead is closed at that operation.
func (w *crashes) scheduleFault() (dead chan struct{}, gentle bool) {
	dead = make(chan struct{})
	gentle = w.rng.IntN(6) == 0
	at, keep := w.fs.Ops()+w.rng.IntN(1+w.rng.IntN(300)), w.rng.IntN(700)
	if gentle {
		w.sick++
	}
	hit := false
	w.fs.SetFault(func(op memfs.Op) memfs.Fault {
		reads := op.Kind == memfs.OpRead || op.Kind == memfs.OpOpen || op.Kind == memfs.OpSize || op.Kind == memfs.OpReadDir || op.Kind == memfs.OpClose
		if op.N < at || gentle && reads {
			return memfs.Fault{}
		}
		first := !hit
		if first {
			hit = true
			close(dead)
			return memfs.Fault{Err: syscall.EIO, Keep: keep}
		}
		return memfs.Fault{Err: syscall.EIO}
	})
	return dead, gentle
}

// resumeClients lets the clients reconnect to a server that has become read-only.
func (w *crashes) resumeClients(s *Server) {
	var all sync.WaitGroup
	w.over.Store(false)
	for _, c := range w.clients {
		if c.ticket == nil || c.ticket.left {
			continue
		}
		all.Go(func() { // until over, some milliseconds later
			if err := c.work(s); err != nil && err != errLost {
				w.failf("read-only: %v", err)
			}
		})
	}
	// Longer than any session lives: none may end here.
	time.Sleep(time.Duration(100+w.rng.IntN(9000)) * time.Millisecond)
	w.over.Store(true)
	all.Wait()
}

// quiet lets the server live for longer than any session without its client,
// and looks at those.
func (w *crashes) quiet(s *Server) {
	w.idle++
	time.Sleep(7500 * time.Millisecond)
	late := w.overdue()
	c := &crashClient{w: w, rng: w.rng, name: "observer"}
	if err := c.connect(s); err != nil {
		w.failf("observer: %v", err)
		return
	}
	defer c.nc.Close()
	for path, t := range late {
		f, err := c.look(path)
		if err != nil {
			w.failf("observer: %v", err)
		}
		if f.exists {
			w.failf("%s is still there, %v after its session's last word and %v after the server's start", path, time.Since(t.sent), time.Since(w.started))
		}
	}
	_ = c.quit()
}

// overdue lists the ephemeral nodes of sessions that must be over by now, and
// takes note of that.
func (w *crashes) overdue() map[string]*sessionRecord {
	b := w.books
	b.mu.Lock()
	defer b.mu.Unlock()
	late := make(map[string]*sessionRecord)
	for _, t := range b.sessions {
		if t.left && !t.over && time.Since(later(w.started, t.sent)) > t.timeout+100*time.Millisecond {
			t.closed, t.over = deletes, true
			w.expired++
		}
	}
	for path, p := range b.pages {
		if t := b.sessions[p.owner]; p.owner != 0 && t.over {
			late[path] = t
		}
	}
	return late
}

// markExpirable notes which sessions may be over at the server's end: all others must
// be there at the next start.
func (w *crashes) markExpirable(now time.Time) {
	b := w.books
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

// audit compares the ledger with a server that has no other clients.
func (w *crashes) audit(s *Server) {
	w.fs.SetFault(nil)
	c := &crashClient{w: w, rng: w.rng, name: "auditor"}
	if err := c.connect(s); err != nil {
		w.failf("audit: %v", err)
		return
	}
	defer c.nc.Close()
	seen, err := c.inventory()
	if err == nil {
		err = c.clearQueue()
	}
	if err == nil && s.loop.tree.Zxid() < w.books.top { // nobody else is here
		err = fmt.Errorf("transaction %#x after %#x was acknowledged", s.loop.tree.Zxid(), w.books.top)
	}
	if err != nil {
		w.failf("audit: %v", err)
		return
	}
	w.note(func() {
		for path, p := range w.books.pages {
			a, b := seen[path], seen[p.twin]
			if p.pending == creates && p.twin != "" && (a.exists != b.exists || a.czxid != b.czxid) {
				w.failf("half a multi: %s is %+v and %s is %+v", path, a, p.twin, b)
			}
		}
		for path := range w.books.pages {
			if _, ok := seen[path]; !ok {
				seen[path] = found{}
			}
		}
		for path, f := range seen {
			if err := w.books.observed(path, f); err != nil {
				w.failf("audit: %v", err)
			}
		}
	})
	if err := c.clean(); err != nil {
		w.failf("audit: %v", err)
	}
	if err := c.quit(); err != errLost || !c.ticket.over {
		w.failf("audit: closing: %v", err)
	}
	w.forgetSessions()
}

// forgetSessions drops those that are over and left nothing behind.
func (w *crashes) forgetSessions() {
	w.note(func() {
		used := make(map[int64]bool)
		for _, p := range w.books.pages {
			used[p.owner] = true
		}
		for id, t := range w.books.sessions {
			if t.over && !used[id] {
				delete(w.books.sessions, id)
			}
		}
	})
}

// clean deletes what clients that left have left behind, but for ephemeral nodes:
// those are their sessions' to end.
func (c *crashClient) clean() error {
	here := make(map[string]bool)
	for _, other := range c.w.clients {
		here[other.name] = true
	}
	c.own = nil
	c.w.note(func() {
		for path, p := range c.w.books.pages {
			name, _, _ := strings.Cut(strings.TrimPrefix(path, "/n/"), "-")
			if p.owner == 0 && !here[name] {
				c.own = append(c.own, path)
			}
		}
	})
	slices.Sort(c.own) // a map's order is another one in each run
	for _, path := range slices.Clone(c.own) {
		if err := c.remove(path); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

// inventory reads all nodes of the clients.
func (c *crashClient) inventory() (map[string]found, error) {
	var resp wire.GetChildrenResponse
	if _, err := c.ask(wire.OpGetChildren, &wire.GetChildrenRequest{Path: "/n"}, &resp); err != nil {
		return nil, err
	}
	seen := make(map[string]found)
	for _, name := range resp.Children {
		f, err := c.look("/n/" + name)
		if err != nil {
			return nil, err
		}
		seen["/n/"+name] = f
	}
	return seen, nil
}

// clearQueue takes note of the sequential nodes whose creator had no answer, and
// removes them.
func (c *crashClient) clearQueue() error {
	var resp wire.GetChildrenResponse
	if _, err := c.ask(wire.OpGetChildren, &wire.GetChildrenRequest{Path: "/q"}, &resp); err != nil {
		return err
	}
	for _, name := range resp.Children {
		path := "/q/" + name
		if err := c.w.numberOf(path); err != nil {
			return err
		}
		if _, err := c.ask(wire.OpDelete, &wire.DeleteRequest{Path: path, Version: -1}, new(wire.Empty)); err != nil {
			return err
		}
	}
	return nil
}

// numberOf notes a number that may be in the books already, by the same path.
func (w *crashes) numberOf(path string) (err error) {
	w.note(func() {
		var n int
		if _, err = fmt.Sscanf(path[strings.LastIndexByte(path, '-')+1:], "%d", &n); err == nil && w.books.numbers[n] != path {
			_, err = w.books.number(path)
		}
	})
	return err
}

// report logs what was done, and fails if that was too little.
func (w *crashes) report(cycles int) {
	b := w.books
	w.t.Logf("%d cycles: %d losses of power, %d kills, %d of them in recovery, %d disks failing for writes (%d served read-only), %d regular ends",
		cycles, w.losses, w.kills, w.recovering, w.sick, w.readOnly, w.graceful)
	w.t.Logf("%d changes acknowledged, %d requests without an answer, %d sequence numbers, %d sessions closed, %d expired, %d snapshots, %d failed",
		b.acked, b.unknown, len(b.numbers), w.closed.Load(), w.expired, w.snapshots, w.failed)
	if cycles >= 300 && (b.acked < 20*cycles || b.unknown < cycles/4 || w.expired < cycles/100 || w.readOnly < cycles/50 || w.snapshots < int64(cycles/4)) {
		w.t.Error("too little was done to show anything")
	}
}
