package zkserver

import (
	"time"

	"github.com/zklock/zklock/internal/tree"
)

// Stats are the figures of a server, taken between two batches. Figures that other
// goroutines count may be slightly newer. Counters begin at zero when the server starts and
// never decrease, except where "srst" is named.
type Stats struct {
	// Sessions is the number of sessions that have not ended, connected or not.
	Sessions int
	// IdleSince is when the last session ended, or when the server started if there was
	// none. It is the zero Time while there are sessions.
	IdleSince time.Time
	// Uptime is the time since New.
	Uptime time.Duration
	// Connections is the number of open connections.
	Connections int
	// Outstanding is the number of requests that were read and not yet answered.
	Outstanding int
	// Zxid is the id of the last transaction.
	Zxid int64

	// Nodes and Watches count those in the tree. Ephemerals, Containers, and TTLs are the
	// nodes of these kinds among them. DataBytes is about the size of all paths and data.
	Nodes, Watches, Ephemerals, Containers, TTLs int
	DataBytes                                    int64
	// Watchers is the number of connections with watches, WatchedPaths the number of
	// watched paths.
	Watchers, WatchedPaths int

	// Received and Sent count requests read, and replies and events handed to
	// connections, since the start or the last "srst".
	Received, Sent int64
	// LatencyMin, LatencyMax, and LatencyAverage are of requests since the start or the
	// last "srst", from the read of a request to its answer.
	LatencyMin, LatencyMax, LatencyAverage time.Duration
	// ReplyLast, ReplyMin, and ReplyMax are sizes of replies in bytes, -1 before the first,
	// as ZooKeeper's client response sizes, since the last "srst".
	ReplyLast, ReplyMin, ReplyMax int

	// BytesReceived and BytesSent count the bytes of requests, replies, and events,
	// including their length fields, before encryption.
	BytesReceived, BytesSent int64
	// ConnectionsAccepted counts admitted connections, including those from inside the
	// process.
	ConnectionsAccepted int64
	// SessionsOpened, SessionsExpired, and AuthFailures count created sessions, sessions
	// that timed out, and failed authentications.
	SessionsOpened, SessionsExpired, AuthFailures int64
	// AuthDelays counts how often an attempt to authenticate had to wait because its
	// address had sent many credentials.
	AuthDelays int64
	// ConnectionsRefused and ConnectionsCut count connections by the limit that applied.
	ConnectionsRefused ConnectionsRefused
	ConnectionsCut     ConnectionsCut
	// RequestsThrottled counts how often the server stopped reading from a connection
	// because of MaxOutstanding or unread answers.
	RequestsThrottled int64
	// LimitRefusals counts requests refused because of a limit on the whole state.
	LimitRefusals LimitRefusals
	// TLSHandshakeFailures counts connections whose TLS handshake failed. TLSReloads and
	// TLSReloadFailures count how often changed certificate files were loaded, or were
	// invalid and not used.
	TLSHandshakeFailures, TLSReloads, TLSReloadFailures int64

	// Reads and Updates time the requests that read and that change the tree, from the read
	// of a request until its answer may leave.
	Reads, Updates Timing
	// LongestTurn is the longest time, since the start, for which the server served one
	// connection, handled deadlines, or collected figures and answers of four-letter words
	// before it served another connection.
	LongestTurn time.Duration
	// Batches counts the batches of requests. The records of a batch share a sync.
	Batches int64
	// Syncs is how often the log was synced, 0 without DataDir. Fsync times the syncs,
	// including the write.
	Syncs uint64
	Fsync Timing
	// LogBytes is the size of the log on disk. LogWritten is the number of bytes written to
	// it since the start.
	LogBytes, LogWritten int64
	// Recovery is how long New took to read the data directory.
	Recovery time.Duration
	// SnapshotsWritten and SnapshotsFailed count snapshots, and Snapshots times them.
	SnapshotsWritten, SnapshotsFailed int64
	Snapshots                         Timing

	// ReadOnly reports that the storage failed and that the server only answers reads.
	// StorageError is the reason, "" without a failure. StorageErrors counts failures.
	ReadOnly      bool
	StorageError  string
	StorageErrors int64
	// NoSync reports that acknowledged changes may be lost, see Options.NoSync.
	NoSync bool
}

// ConnectionsRefused counts connections that the server closed before reading from them.
type ConnectionsRefused struct {
	TooManyPerAddress int64 // Options.MaxClientConns
	TooManyConns      int64 // Options.MaxConns, or the process's limit of open files
	ByAccept          int64 // Options.Accept
}

// ConnectionsCut counts connections that the server closed because of what their clients
// did or did not do.
type ConnectionsCut struct {
	SlowReaders       int64 // Options.MaxUnread
	HandshakeTimeouts int64 // Options.HandshakeTimeout, or a new connection replaced a half-open one
	FrameTooLong      int64 // Options.MaxFrame, or not a frame
	Broken            int64 // the network failed, or the connect request was malformed
}

// LimitRefusals counts requests that were refused because the server has reached a limit.
type LimitRefusals struct {
	Watches, Nodes, Data int64 // Options.MaxWatches and MaxWatchesPerConn, MaxNodes, MaxData
	Sessions             int64 // Options.MaxSessions: counts connections
	Replies              int64 // Options.MaxReply, including multis with too many events
}

// Stats returns the server's figures. It waits for the running batch. Once the server has
// ended, it returns the last figures.
func (s *Server) Stats() Stats {
	s.runOnLoop(s.publish)
	s.mu.Lock()
	st := s.stats
	st.Connections = len(s.live)
	s.mu.Unlock()
	s.count.fill(&st)
	return st
}

// fill adds the counters that goroutines other than the loop update.
func (c *counters) fill(st *Stats) {
	st.ConnectionsAccepted = c.accepted.Load()
	st.ConnectionsRefused = ConnectionsRefused{
		TooManyPerAddress: c.refusedPerAddress.Load(), TooManyConns: c.refusedTotal.Load(), ByAccept: c.refusedByOption.Load(),
	}
	st.ConnectionsCut = ConnectionsCut{
		SlowReaders: c.cutSlow.Load(), HandshakeTimeouts: c.cutHandshake.Load(), FrameTooLong: c.cutFrame.Load(), Broken: c.cutBroken.Load(),
	}
	st.RequestsThrottled, st.AuthDelays = c.throttled.Load(), c.delayedAuths.Load()
	st.TLSHandshakeFailures, st.TLSReloads, st.TLSReloadFailures = c.tlsHandshakeFailures.Load(), c.tlsReloads.Load(), c.tlsReloadFailures.Load()
	st.SnapshotsWritten, st.SnapshotsFailed, st.StorageErrors = c.snapshotsWritten.Load(), c.snapshotsFailed.Load(), c.storageErrors.Load()
}

// publish updates the figures of the loop. It runs on the loop's goroutine.
func (s *Server) publish() {
	l, at := &s.loop, s.elapsed()
	st := s.stats // only publish writes it
	if l.diverged {
		st.Zxid = l.acknowledgedZxid
	} else {
		st.ofTree(l.tree)
	}
	t := &l.traffic
	st.IdleSince, st.Uptime, st.Outstanding = l.idleSince, at, s.outstanding()
	st.Received, st.Sent, st.BytesReceived, st.BytesSent = t.received, t.sent, l.bytesIn, l.bytesOut
	st.LatencyMin, st.LatencyMax, st.LatencyAverage = t.latency.min, t.latency.max, t.latency.mean()
	st.ReplyLast, st.ReplyMin, st.ReplyMax = t.replies.last, t.replies.min, t.replies.max
	st.Reads, st.Updates, st.Batches = l.reads.report(at), l.updates.report(at), l.rounds
	st.LongestTurn = l.longestTurn
	st.Fsync, st.Recovery, st.Snapshots = l.fsync.report(at), l.recovery, l.snapshots.report(at)
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

// ofTree copies the figures of the tree.
func (st *Stats) ofTree(t *tree.Tree) {
	c, events := t.Counts(), t.Counters()
	st.Sessions, st.Zxid, st.ReadOnly = c.Sessions, t.Zxid(), t.ReadOnly()
	st.Nodes, st.Ephemerals, st.Containers, st.TTLs, st.DataBytes = c.Nodes, c.Ephemerals, c.Containers, c.TTLs, c.DataBytes
	st.Watches, st.Watchers, st.WatchedPaths = c.Watches, c.Watchers, c.WatchedPaths
	st.SessionsOpened, st.SessionsExpired, st.AuthFailures = events.Opened, events.Expired, events.AuthFailures
	st.LimitRefusals = LimitRefusals{
		Watches: events.RefusedWatches, Nodes: events.RefusedNodes, Data: events.RefusedData,
		Sessions: events.RefusedSessions, Replies: events.RefusedReplies,
	}
}

// updateIdleSince records since when there is no session.
func (s *Server) updateIdleSince() {
	l := &s.loop
	switch idle := l.tree.SessionCount() == 0; {
	case !idle:
		l.idleSince = time.Time{}
	case l.idleSince.IsZero():
		l.idleSince = time.Now()
	}
}
