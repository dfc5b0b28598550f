package zkserver

import (
	"time"

	"github.com/zklock/zklock/internal/tree"
)

// Stats is what a server counts. Taken at one moment, between two batches; what
// other goroutines count may be a moment younger. Counters begin with the server
// and never go back, except where "srst" is named.
type Stats struct {
	// Sessions is the number of sessions that have not ended, connected or not.
	Sessions int
	// IdleSince is when the last session ended, or when the server started if
	// there never was one. It is the zero Time while there are sessions.
	IdleSince time.Time
	// Uptime is the time since New.
	Uptime time.Duration
	// Connections is the number of open connections.
	Connections int
	// Outstanding is the number of requests that were read and not yet answered.
	Outstanding int
	// Zxid is the last transaction.
	Zxid int64

	// Nodes and Watches count what the tree holds; Ephemerals, Containers and
	// TTLs are the nodes of those kinds among them. DataBytes is about the size
	// of all paths and data.
	Nodes, Watches, Ephemerals, Containers, TTLs int
	DataBytes                                    int64
	// Watchers is the number of connections that watch anything, WatchedPaths
	// that of the paths watched.
	Watchers, WatchedPaths int

	// Received and Sent count requests read, and replies and events handed to
	// connections, since the start or the last "srst".
	Received, Sent int64
	// LatencyMin, LatencyMax and LatencyAverage are of requests since the start
	// or the last "srst", from the read of a request to its answer.
	LatencyMin, LatencyMax, LatencyAverage time.Duration
	// ReplyLast, ReplyMin and ReplyMax are sizes of replies in bytes, -1 before
	// the first, as ZooKeeper's client response sizes; since the last "srst".
	ReplyLast, ReplyMin, ReplyMax int

	// BytesReceived and BytesSent count requests, replies and events, with
	// their lengths, before encryption.
	BytesReceived, BytesSent int64
	// ConnectionsAccepted counts connections that were admitted, those from
	// inside the process among them.
	ConnectionsAccepted int64
	// SessionsOpened, SessionsExpired and AuthFailures count sessions that
	// were made, sessions that timed out, and proofs of identity that failed.
	SessionsOpened, SessionsExpired, AuthFailures int64
	// AuthDelays counts how often an attempt to authenticate had to wait, since its
	// address had shown many credentials.
	AuthDelays int64
	// ConnectionsRefused and ConnectionsCut count by the limit that did it.
	ConnectionsRefused ConnectionsRefused
	ConnectionsCut     ConnectionsCut
	// RequestsThrottled counts how often the server stopped reading from a
	// connection because of MaxOutstanding or unread answers.
	RequestsThrottled int64
	// LimitRefusals counts requests refused for the size of everything.
	LimitRefusals LimitRefusals
	// TLSHandshakeFailures counts connections that did not get through their
	// TLS handshake; TLSReloads and TLSReloadFailures how often changed
	// certificate files were taken up or, being bad, left alone.
	TLSHandshakeFailures, TLSReloads, TLSReloadFailures int64

	// Reads and Updates time requests by whether they change the tree, from
	// the read of a request until its answer is ready to leave.
	Reads, Updates Timing
	// LongestTurn is the longest time since the start for which the server served one
	// connection, or did what was due, before any other had its turn.
	LongestTurn time.Duration
	// Batches counts the batches of requests; the records of one share a sync.
	Batches int64
	// Syncs is how often the log was synced, 0 without DataDir, and Fsync how
	// long that took, the write included.
	Syncs uint64
	Fsync Timing
	// LogBytes is the size of the log on disk, LogWritten what was written to
	// it since the start.
	LogBytes, LogWritten int64
	// Recovery is how long New took to read the data directory.
	Recovery time.Duration
	// SnapshotsWritten and SnapshotsFailed count snapshots, Snapshots times
	// them.
	SnapshotsWritten, SnapshotsFailed int64
	Snapshots                         Timing

	// ReadOnly says that the storage failed and that the server answers reads
	// alone; StorageError is why, "" while nothing is wrong. StorageErrors
	// counts failures.
	ReadOnly      bool
	StorageError  string
	StorageErrors int64
	// NoSync says that what is acknowledged may be lost, see Options.NoSync.
	NoSync bool
}

// ConnectionsRefused counts connections that were closed before a byte was
// read from them.
type ConnectionsRefused struct {
	TooManyPerAddress int64 // Options.MaxClientConns
	TooManyConns      int64 // Options.MaxConns, or the process's limit of open files
	ByAccept          int64 // Options.Accept
}

// ConnectionsCut counts connections that the server ended for what their
// clients did or left undone.
type ConnectionsCut struct {
	SlowReaders       int64 // Options.MaxUnread
	HandshakeTimeouts int64 // Options.HandshakeTimeout, or another connection needed the place of a silent one
	FrameTooLong      int64 // Options.MaxFrame, or no frame at all
	Broken            int64 // the network failed, or the connect request was none
}

// LimitRefusals counts requests that were refused because the server holds as
// much as it may.
type LimitRefusals struct {
	Watches, Nodes, Data int64 // Options.MaxWatches and MaxWatchesPerConn, MaxNodes, MaxData
	Sessions             int64 // Options.MaxSessions: these are connections
	Replies              int64 // Options.MaxReply, multis with too many events among them
}

// Stats returns the counters. It waits for the batch under way, and returns
// what was last once the server has ended.
func (s *Server) Stats() Stats {
	s.ask(s.publish)
	s.mu.Lock()
	st := s.stats
	st.Connections = len(s.live)
	s.mu.Unlock()
	s.count.fill(&st)
	return st
}

// fill adds what other goroutines than the loop count.
func (c *counters) fill(st *Stats) {
	st.ConnectionsAccepted = c.accepted.Load()
	st.ConnectionsRefused = ConnectionsRefused{
		TooManyPerAddress: c.refusedPerAddress.Load(), TooManyConns: c.refusedTotal.Load(), ByAccept: c.refusedByOption.Load(),
	}
	st.ConnectionsCut = ConnectionsCut{
		SlowReaders: c.cutSlow.Load(), HandshakeTimeouts: c.cutHandshake.Load(), FrameTooLong: c.cutFrame.Load(), Broken: c.cutBroken.Load(),
	}
	st.RequestsThrottled, st.AuthDelays = c.throttled.Load(), c.delayedProofs.Load()
	st.TLSHandshakeFailures, st.TLSReloads, st.TLSReloadFailures = c.tlsHandshakeFailures.Load(), c.tlsReloads.Load(), c.tlsReloadFailures.Load()
	st.SnapshotsWritten, st.SnapshotsFailed, st.StorageErrors = c.snapshotsWritten.Load(), c.snapshotsFailed.Load(), c.storageErrors.Load()
}

// publish counts what belongs to the loop, on its goroutine.
func (s *Server) publish() {
	l, at := &s.loop, s.elapsed()
	st := s.stats // nobody else writes it
	if !l.lost {
		st.ofTree(l.tree)
	}
	t := &l.traffic
	st.IdleSince, st.Uptime, st.Outstanding = l.idleSince, at, s.outstanding()
	st.Received, st.Sent, st.BytesReceived, st.BytesSent = t.received, t.sent, l.bytesIn, l.bytesOut
	st.LatencyMin, st.LatencyMax, st.LatencyAverage = t.latency.min, t.latency.max, t.latency.mean()
	st.ReplyLast, st.ReplyMin, st.ReplyMax = t.replies.last, t.replies.least, t.replies.most
	st.Reads, st.Updates, st.Batches = l.reads.show(at), l.updates.show(at), l.rounds
	st.LongestTurn = l.longestTurn
	st.Fsync, st.Recovery, st.Snapshots = l.fsync.show(at), l.recovery, l.snapshots.show(at)
	if l.log != nil {
		log := l.log.Stats()
		st.Syncs, st.LogBytes, st.LogWritten = log.Syncs, log.Bytes, int64(log.Written)
	}
	st.NoSync = l.log != nil && s.opts.NoSync
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.storageErr != nil {
		st.StorageError = s.storageErr.Error()
	}
	s.stats = st
}

// ofTree takes the figures that the tree has.
func (st *Stats) ofTree(t *tree.Tree) {
	c, tallies := t.Counts(), t.Tallies()
	st.Sessions, st.Zxid, st.ReadOnly = c.Sessions, t.Zxid(), t.ReadOnly()
	st.Nodes, st.Ephemerals, st.Containers, st.TTLs, st.DataBytes = c.Nodes, c.Ephemerals, c.Containers, c.TTLs, c.DataBytes
	st.Watches, st.Watchers, st.WatchedPaths = c.Watches, c.Watchers, c.WatchedPaths
	st.SessionsOpened, st.SessionsExpired, st.AuthFailures = tallies.Opened, tallies.Expired, tallies.AuthFailures
	st.LimitRefusals = refusals(tallies)
}

// noteIdle keeps the time since which there is no session.
func (s *Server) noteIdle() {
	l := &s.loop
	switch idle := l.tree.SessionCount() == 0; {
	case !idle:
		l.idleSince = time.Time{}
	case l.idleSince.IsZero():
		l.idleSince = time.Now()
	}
}
