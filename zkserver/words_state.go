package zkserver

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

// The four-letter words about the server rather than its connections.

func (s *Server) wordMntr() string {
	t, counts := &s.loop.traffic, s.loop.tree.Counts()
	syncs := uint64(0)
	if s.loop.log != nil {
		syncs = s.loop.log.Stats().Syncs
	}
	var b strings.Builder
	for _, row := range []struct {
		key   string
		value any
	}{
		{"version", version},
		{"server_state", "standalone"},
		{"avg_latency", javaDouble(t.latency.mean())},
		{"max_latency", t.latency.max.Milliseconds()},
		{"min_latency", t.latency.min.Milliseconds()},
		{"packets_received", t.received},
		{"packets_sent", t.sent},
		{"num_alive_connections", s.connections()},
		{"outstanding_requests", s.outstanding()},
		{"znode_count", counts.Nodes},
		{"watch_count", counts.Watches},
		{"ephemerals_count", counts.Ephemerals},
		{"approximate_data_size", counts.DataBytes},
		{"global_sessions", counts.Sessions},
		{"local_sessions", 0},
		{"uptime", s.elapsed().Milliseconds()},
		{"batches", s.loop.rounds},
		{"log_syncs", syncs},
		{"goroutines", runtime.NumGoroutine()},
	} {
		fmt.Fprintf(&b, "zk_%s\t%v\n", row.key, row.value)
	}
	return b.String()
}

func (s *Server) wordConf() string {
	var b strings.Builder
	s.mu.Lock()
	for ln := range s.listeners {
		fmt.Fprintf(&b, "clientPortAddress=%v\n", ln.Addr())
	}
	s.mu.Unlock()
	o := &s.opts
	fmt.Fprintf(&b, "dataDir=%s\ndataLogDir=%s\ntickTime=%d\nmaxClientCnxns=%d\nminSessionTimeout=%d\nmaxSessionTimeout=%d\nserverId=0\n",
		o.DataDir, o.DataDir, o.TickTime.Milliseconds(), o.MaxClientConns, o.MinSessionTimeout.Milliseconds(), o.MaxSessionTimeout.Milliseconds())
	return b.String()
}

// wordEnvi leaves out what ZooKeeper tells about the user and the paths:
// anybody who can connect may ask.
func (s *Server) wordEnvi() string {
	host, err := os.Hostname()
	if err != nil {
		host = "<NA>"
	}
	return fmt.Sprintf("Environment:\nzookeeper.version=%s\nhost.name=%s\ngo.version=%s\nos.name=%s\nos.arch=%s\n",
		version, host, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// wordDump lists sessions and ephemeral nodes, ordered by session.
func (s *Server) wordDump() string {
	var b strings.Builder
	sessions := s.loop.tree.Sessions()
	fmt.Fprintf(&b, "SessionTracker dump:\nSession Sets (%d)/(%d):\n", len(sessions), len(sessions))
	holders := 0
	for _, ses := range sessions {
		fmt.Fprintf(&b, "%#x\t%dms\n", uint64(ses.ID), ses.Timeout)
		if len(ses.Ephemerals) > 0 {
			holders++
		}
	}
	fmt.Fprintf(&b, "ephemeral nodes dump:\nSessions with Ephemerals (%d):\n", holders)
	for _, ses := range sessions {
		if len(ses.Ephemerals) == 0 {
			continue
		}
		fmt.Fprintf(&b, "%#x:\n", uint64(ses.ID))
		for _, path := range ses.Ephemerals {
			fmt.Fprintf(&b, "\t%s\n", path)
		}
	}
	return b.String()
}

func (s *Server) wordWchs() string {
	c := s.loop.tree.Counts()
	return fmt.Sprintf("%d connections watching %d paths\nTotal watches:%d\n", c.Watchers, c.WatchedPaths, c.Watches)
}
