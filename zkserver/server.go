package zkserver

import (
	"container/list"
	"context"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zklock/zklock/internal/tree"
	"github.com/zklock/zklock/internal/wal"
)

// Server is a ZooKeeper server of one node. Create it with New, give it listeners with
// Serve, and end it with Shutdown or Close. Its methods are safe for concurrent use.
type Server struct {
	opts  Options
	log   *slog.Logger
	start time.Time

	wake     chan struct{} // of capacity 1: the loop has work
	stop     chan struct{} // closed by end; ends the loop
	closing  chan struct{} // closed by Close, which does not wait for the last snapshot
	done     chan struct{} // closed when the loop has ended and the log is closed
	listSlot chan struct{} // of capacity 1: held by the four-letter word that builds a list
	drained  chan struct{} // closed when the server drains and no connection is left
	handlers sync.WaitGroup

	syncs  chan struct{}   // of capacity 1: tells the syncer to sync; closed by the loop at its end
	synced chan syncResult // of capacity 1: the result of the sync

	allocated chan []byte // of capacity 1: a buffer for a long answer, see provideBuffer

	handshakes chan struct{} // see handshakeContext.slots
	words      chan struct{} // see answer.slots
	yields     chan struct{} // see yield

	poll atomic.Pointer[poller] // nil until a connection is polled; used by the loop

	audit     *audit    // nil without Options.Audit
	loop      loop      // used only by the loop
	exchanges sync.Pool // unused *exchange values

	readers sync.Pool // unused *bufio.Reader values of idleBuffer bytes

	mu             sync.Mutex
	state          state
	graceful       bool  // the loop writes a snapshot at its end
	err            error // why the server failed; nil if Shutdown or Close ended it
	storageErr     error // why the server is read-only or has failed; nil if its storage works
	listeners      map[net.Listener]bool
	live           []*conn                   // all connections, unordered
	perIP          map[netip.Addr]int        // counted connections by addressKey
	halfOpen       list.List                 // half-open connections, oldest first
	halfOpenByAddr map[netip.Addr]*list.List // the same by addressKey
	evicted        map[*conn]bool            // connections in live that no longer count for the limits
	lastID         tree.ConnID
	ready          []*conn  // connections with input, or that have ended
	handedOver     []*conn  // connections that the loop takes over
	loopEnded      bool     // the loop takes over no more connections
	calls          []func() // functions for the loop to run
	stats          Stats

	count        counters
	requestLimit requestLimit
	logLimits    logLimiters
}

// state is the phase of a Server. It only increases.
type state int

const (
	serving  state = iota
	draining       // answers the requests that were read; reads and accepts nothing more
	closed
)

// loop is the state that only the loop's goroutine uses.
type loop struct {
	tree              *tree.Tree
	log               *wal.Log // nil without DataDir
	conns             map[tree.ConnID]*conn
	out               tree.Out
	slots             []*conn        // polled connections by slot, nil if the slot is free
	free              []int32        // free slots
	polls             int            // number of polled connections
	runnable          []*conn        // connections with more input than one round takes
	cheapFirst        bool           // the next round takes connections in the order of orderCheapFirst
	work              time.Duration  // as the tree estimates it, of the present turn
	writable          []*conn        // connections whose unwritten output has room, or was postponed
	slowReaders       map[*conn]bool // connections with much unread output, at the last check
	slowReadersGrew   bool           // a slow reader was sent more in this round
	filling           batch          // the batch that takes the output of this round
	inFlight          batch          // the batch that is being synced; empty if none is
	syncing           bool           // the syncer has work, or its result is not collected yet
	busyDuringSync    bool           // clients sent requests during the last sync
	snapshotRecords   int            // since the last snapshot
	snapshotBytes     int64          // since the last snapshot
	lastIndex         uint64         // of the last record in the log
	overlaps          int            // number of batches filled during a sync
	durableIndex      uint64         // of the last record that was synced
	acknowledgedZxid  int64          // of the last transaction whose answer has left, with a data directory
	snapshot          *snapshotJob   // the running snapshot; nil if none
	snapshotNotBefore time.Duration  // no snapshot begins earlier
	diverged          bool           // the tree has changes that are not on disk, and the server ends
	authDelays        authDelays     // delays of attempts to authenticate
	buffers           answerBuffers
	loopStats
	longestTurn   time.Duration             // see Stats.LongestTurn
	charges       map[account]time.Duration // until when an account is charged
	idleSince     time.Time                 // zero while there are sessions
	tickNotBefore time.Duration             // no session expires earlier: the process was paused
	rounds        int64                     // number of rounds
}

// New creates a server and recovers the state in its data directory, which takes about as
// long as reading the files. A nil o means the zero Options. From then on the server runs and
// sessions expire. The caller gives it listeners with [Server.Serve], and must end it with
// Shutdown or Close.
//
// The error wraps [ErrInvalidOptions], or says that another server uses the directory or that
// the directory is damaged, and what to do.
func New(o *Options) (*Server, error) {
	if o == nil {
		o = new(Options)
	}
	opts, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Server{
		opts:       opts,
		log:        opts.Logger,
		start:      time.Now(),
		wake:       make(chan struct{}, 1),
		stop:       make(chan struct{}),
		closing:    make(chan struct{}),
		done:       make(chan struct{}),
		listSlot:   make(chan struct{}, 1),
		drained:    make(chan struct{}),
		syncs:      make(chan struct{}, 1),
		synced:     make(chan syncResult, 1),
		allocated:  make(chan []byte, 1),
		handshakes: make(chan struct{}, computeSlots()),
		words:      make(chan struct{}, computeSlots()),
		yields:     make(chan struct{}, computeSlots()),
		listeners:  make(map[net.Listener]bool),
		perIP:      make(map[netip.Addr]int),

		halfOpenByAddr: make(map[netip.Addr]*list.List),
		evicted:        make(map[*conn]bool),
	}
	s.loop.conns = make(map[tree.ConnID]*conn)
	s.loop.slowReaders = make(map[*conn]bool)
	s.loop.charges = make(map[account]time.Duration)
	s.requestLimit.setLimits(opts.MaxOutstandingTotal, opts.MaxOutstandingBytes)
	s.loop.traffic = newTraffic()
	if err := s.recoverTree(); err != nil {
		return nil, err
	}
	s.loop.recovery = s.elapsed()
	s.updateIdleSince()
	s.publish()
	if s.loop.log != nil {
		s.handlers.Add(1)
		go s.syncer()
	}
	s.startAudit()
	// Shutdown, Close, or a storage failure closes stop, which ends the loop. The loop then
	// closes done.
	go s.run()
	s.fillControls(opts.setup.Controls)
	return s, nil
}

// elapsed returns the time on the server's monotonic clock, by which sessions expire.
func (s *Server) elapsed() time.Duration { return time.Since(s.start) }

// now returns the current time in the tree's form.
func (s *Server) now() tree.Now {
	t := time.Now()
	return tree.Now{Wall: t.UnixMilli(), Mono: t.Sub(s.start)}
}

// markReady puts c on the list of connections for the loop to serve.
func (s *Server) markReady(c *conn) {
	s.mu.Lock()
	added := !c.onReadyList
	if added {
		c.onReadyList = true
		s.ready = append(s.ready, c)
	}
	s.mu.Unlock()
	if added {
		s.wakeLoop()
	}
}

// wakeLoop wakes the loop. If a token is in the channel already, the loop takes it before
// it reads the ready list, so one token is enough.
func (s *Server) wakeLoop() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
	if p := s.poll.Load(); p != nil {
		p.wake()
	}
}

// runOnLoop runs f on the loop between two batches, when everything that f can see is
// durable, and returns after f. It returns false if the server ends first.
func (s *Server) runOnLoop(f func()) bool {
	ran := make(chan struct{})
	s.postToLoop(func() { f(); close(ran) })
	select {
	case <-ran:
		return true
	case <-s.done:
		return false
	}
}

// hasReady reports whether connections are on the ready list.
func (s *Server) hasReady() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.ready) > 0
}

// postToLoop lets the loop run f between two batches, unless the server ends first.
func (s *Server) postToLoop(f func()) {
	s.mu.Lock()
	s.calls = append(s.calls, f)
	s.mu.Unlock()
	s.wakeLoop()
}

// draining reports whether the server has stopped reading requests.
func (s *Server) draining() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state != serving
}

// Shutdown ends the server gracefully: it accepts and reads nothing more, answers the
// requests that it has read, closes every connection, writes a snapshot, and releases the
// data directory. Sessions do not end: with a data directory they continue when a server
// starts on it again. If ctx ends first, Shutdown closes the server as Close does, also
// while it writes the snapshot, and returns ctx's error. The next start then reads the log
// instead. If another server starts on the data directory, let ctx end after a few seconds:
// a hold with the default session timeout survives an outage of 10 s, and the snapshot of a
// large state can take longer. Shutdown returns nil if the server has already ended. The
// Accept option must not call it.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	if s.state == serving {
		s.state = draining
		if len(s.live) == 0 {
			close(s.drained)
		}
	}
	listeners, conns := s.allOpen()
	s.mu.Unlock()
	for _, ln := range listeners {
		ln.Close()
	}
	for _, c := range conns {
		// The reader ends. The loop answers the requests that were read, then closes the
		// connection.
		c.stopReading()
	}
	s.postToLoop(s.stopReadingPolled)
	select {
	case <-s.drained:
		s.end(nil, true)
	case <-s.done:
	case <-ctx.Done():
	}
	select {
	case <-s.done:
	case <-ctx.Done():
		s.Close()
		return ctx.Err()
	}
	s.handlers.Wait()
	return nil
}

// stopReading ends the reader of a connection that is not polled.
func (c *conn) stopReading() {
	c.mu.Lock()
	var nc net.Conn
	if c.blockingIO != nil {
		nc = c.nc
	}
	c.mu.Unlock()
	if nc != nil {
		nc.SetReadDeadline(past)
	}
}

// Close ends the server at once: it closes connections and writes no snapshot. Changes that
// were not acknowledged may be lost. Acknowledged changes are in the data directory, if
// there is one. Close returns nil when every goroutine of the server has ended. The Accept
// option must not call it.
func (s *Server) Close() error {
	s.end(nil, false)
	s.mu.Lock()
	if !isClosed(s.closing) {
		close(s.closing)
	}
	s.mu.Unlock()
	<-s.done
	s.handlers.Wait()
	return nil
}

// Done returns a channel that is closed when the server has ended, by Shutdown or Close, or
// because its storage failed and left nothing to read; see [ErrStorage]. A server that has
// become read-only has not ended.
func (s *Server) Done() <-chan struct{} { return s.done }

// end closes listeners and connections and ends the loop. Only the first call has an
// effect. Serve returns err.
func (s *Server) end(err error, graceful bool) {
	s.mu.Lock()
	if s.state == closed {
		s.mu.Unlock()
		return
	}
	if err == nil {
		err = s.storageErr // a read-only server reports why it became read-only
	}
	s.state, s.err, s.graceful = closed, err, graceful
	listeners, conns := s.allOpen()
	s.mu.Unlock()
	close(s.stop)
	s.wakeLoop()
	for _, ln := range listeners {
		ln.Close()
	}
	for _, c := range conns {
		c.abort(net.ErrClosed)
	}
}

// liveConns returns the open connections.
func (s *Server) liveConns() []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.live)
}

// allOpen returns the open listeners and connections. The caller holds s.mu.
func (s *Server) allOpen() ([]net.Listener, []*conn) {
	return slices.Collect(maps.Keys(s.listeners)), slices.Clone(s.live)
}
