package zkserver

import (
	"container/list"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zklock/zklock/internal/tree"
	"github.com/zklock/zklock/internal/wal"
)

// Server is a ZooKeeper server of one node. Make one with New, give it
// listeners with Serve, end it with Shutdown or Close. Its methods may be
// called from any goroutine.
type Server struct {
	opts  Options
	log   *slog.Logger
	start time.Time

	wake     chan struct{} // of capacity 1: the loop has something to do
	stop     chan struct{} // closed by end: the loop ends
	done     chan struct{} // closed when the loop has ended and the log is closed
	listing  chan struct{} // of capacity 1: held by a word that keeps a list
	drained  chan struct{} // closed when draining and no connection is left
	handlers sync.WaitGroup

	syncs  chan struct{} // of capacity 1: the syncer's work; closed by the loop at its end
	synced chan landing  // of capacity 1: what came of it

	poll atomic.Pointer[poller] // nil until there is something to poll; used by the loop

	audit *audit    // nil without Options.Audit
	loop  loop      // of the loop's goroutine alone
	turns sync.Pool // of those that nobody has, for the loop

	readers sync.Pool // *bufio.Reader of idleBuffer bytes that nobody has

	mu         sync.Mutex
	state      state
	graceful   bool  // the loop takes a snapshot at its end
	err        error // why the server failed; nil if it was told to end
	storageErr error // why the server is read-only or has failed; nil while all is well
	listeners  map[net.Listener]bool
	live       []*conn            // in no order
	perIP      map[netip.Addr]int // counted connections, by addressKey
	openings   list.List          // half-open connections, the oldest first
	openingsOf map[netip.Addr]int // how many of them are of one address
	leaving    int                // connections in live that gave up their place
	lastID     tree.ConnID
	ready      []*conn  // have input, or have ended
	handed     []*conn  // to be polled by the loop
	ended      bool     // the loop takes nothing more
	calls      []func() // to be run by the loop
	stats      Stats

	count    counters
	pool     pool
	limiters limiters
}

// state is where a Server is in its life; it only grows.
type state int

const (
	serving  state = iota
	draining       // answers what was read, reads and accepts nothing more
	closed
)

// loop is what only the loop's goroutine touches.
type loop struct {
	tree     *tree.Tree
	log      *wal.Log // nil without DataDir
	conns    map[tree.ConnID]*conn
	out      tree.Out
	slots    []*conn        // polled connections by their numbers, nil where one is free
	free     []int32        // numbers
	polls    int            // polled connections
	again    []*conn        // have more input than one round takes
	slow     map[*conn]bool // were behind with reading when they were last looked at
	slowGrew bool           // one of slow was sent more in this round
	filling  batch          // takes what is applied
	flying   batch          // is being synced, empty if none is
	syncing  bool           // the syncer has work whose landing was not taken in
	crowded  bool           // clients wanted something during the last sync
	records  int            // since the last snapshot
	bytes    int64          // since the last snapshot
	index    uint64         // of the last record in the log
	overlaps int            // batches that were filled during a sync
	durable  uint64         // index of the last record that was synced
	saving   *saving        // the snapshot that is being made, nil if none
	saveAt   time.Duration  // no snapshot begins before
	lost     bool           // the tree has changes that are not on disk, and the server ends
	guesses  guesses        // attempts to authenticate
	figures
	longestTurn time.Duration            // see Stats.LongestTurn
	debts       map[debtor]time.Duration // until when they are in debt
	idleSince   time.Time                // zero while there are sessions
	tickAfter   time.Duration            // no session expires before: the process was paused
	rounds      int64                    // batches so far
}

// New makes a server and recovers what its data directory holds, which takes
// about as long as reading the files. Errors: one that wraps [ErrOptions]; a
// directory that is in use by another server, or damaged, named in the error
// with what to do. The server runs from here on, sessions expire, and
// Shutdown or Close must end it.
func New(opts Options) (*Server, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Server{
		opts:      opts,
		log:       opts.Logger,
		start:     time.Now(),
		wake:      make(chan struct{}, 1),
		stop:      make(chan struct{}),
		done:      make(chan struct{}),
		listing:   make(chan struct{}, 1),
		drained:   make(chan struct{}),
		syncs:     make(chan struct{}, 1),
		synced:    make(chan landing, 1),
		listeners: make(map[net.Listener]bool),
		perIP:     make(map[netip.Addr]int),

		openingsOf: make(map[netip.Addr]int),
	}
	s.loop.conns = make(map[tree.ConnID]*conn)
	s.loop.slow = make(map[*conn]bool)
	s.loop.debts = make(map[debtor]time.Duration)
	s.pool.open(opts.MaxOutstandingTotal, opts.MaxOutstandingBytes)
	s.loop.traffic = newTraffic()
	if err := s.recoverTree(); err != nil {
		return nil, err
	}
	s.loop.recovery = s.elapsed()
	s.noteIdle()
	s.publish()
	if s.loop.log != nil {
		s.handlers.Add(1)
		go s.syncer()
	}
	s.startAudit()
	// The loop ends when stop is closed, by Shutdown, Close or a failure of
	// the storage; done tells of it.
	go s.run()
	s.fillControls(opts.Controls)
	return s, nil
}

// elapsed is the monotonic clock of the server: sessions expire by it.
func (s *Server) elapsed() time.Duration { return time.Since(s.start) }

// now is the moment as the tree wants it.
func (s *Server) now() tree.Now {
	t := time.Now()
	return tree.Now{Wall: t.UnixMilli(), Mono: t.Sub(s.start)}
}

// enqueue puts c on the list of connections for the loop to look at.
func (s *Server) enqueue(c *conn) {
	s.mu.Lock()
	fresh := !c.queued
	if fresh {
		c.queued = true
		s.ready = append(s.ready, c)
	}
	s.mu.Unlock()
	if fresh {
		s.wakeLoop()
	}
}

// wakeLoop makes the loop look at the ready list. A token that is there
// already will do: the loop takes it before it looks.
func (s *Server) wakeLoop() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
	if p := s.poll.Load(); p != nil {
		p.wake()
	}
}

// ask runs f between two batches, when all it can see is durable, and returns
// when it has run. It reports false if the server ended instead.
func (s *Server) ask(f func()) bool {
	ran := make(chan struct{})
	s.call(func() { f(); close(ran) })
	select {
	case <-ran:
		return true
	case <-s.done:
		return false
	}
}

// hasReady reports whether there are connections for the loop to look at.
func (s *Server) hasReady() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.ready) > 0
}

// call has f run between two batches, unless the server ends before.
func (s *Server) call(f func()) {
	s.mu.Lock()
	s.calls = append(s.calls, f)
	s.mu.Unlock()
	s.wakeLoop()
}

// draining reports whether the server reads no more.
func (s *Server) draining() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state != serving
}
