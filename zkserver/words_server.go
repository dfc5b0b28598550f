package zkserver

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"runtime/metrics"
	"strings"
	"time"
)

// The four-letter words about the server rather than its connections.

// row is a line of mntr.
type row struct {
	key   string
	value any
}

func (s *Server) wordMntr(a *answer) {
	st := s.Stats()
	for _, rows := range [][]row{gauges(s.opts.version(), st), tallies(st), timings(st), ownRows(st)} {
		for _, r := range rows {
			a.text(fmt.Sprintf("zk_%s\t%v\n", r.key, r.value))
		}
	}
}

// gauges are those that every ZooKeeper server has, under its names
// (ZooKeeperServer.registerMetrics).
func gauges(version string, st Stats) []row {
	return []row{
		{"version", version},
		{"server_state", mode(st)},
		{"ephemerals_count", st.Ephemerals},
		{"num_alive_connections", st.Connections},
		{"avg_latency", javaMillis(st.LatencyAverage)},
		{"outstanding_requests", st.Outstanding},
		{"znode_count", javaNodes(st)},
		{"global_sessions", st.Sessions},
		{"non_mtls_remote_conn_count", 0},
		{"last_client_response_size", st.ReplyLast},
		{"packets_sent", st.Sent},
		{"packets_received", st.Received},
		{"max_client_response_size", st.ReplyMax},
		{"connection_drop_probability", "0.0"},
		{"watch_count", st.Watches},
		{"auth_failed_count", st.AuthFailures},
		{"min_latency", st.LatencyMin.Milliseconds()},
		{"max_file_descriptor_count", maxDescriptors()},
		{"approximate_data_size", st.DataBytes},
		{"open_file_descriptor_count", openDescriptors()},
		{"local_sessions", 0},
		{"uptime", st.Uptime.Milliseconds()},
		{"max_latency", st.LatencyMax.Milliseconds()},
		{"outstanding_tls_handshake", 0},
		{"min_client_response_size", st.ReplyMin},
		{"non_mtls_local_conn_count", 0},
	}
}

// tallies are counters of ZooKeeper's ServerMetrics that have a meaning here.
// Those about quorums and about the queues between Java's processors have none.
func tallies(st Stats) []row {
	return []row{
		{"connection_rejected", st.ConnectionsRefused.TooManyPerAddress + st.ConnectionsRefused.TooManyConns},
		{"sessionless_connections_expired", st.ConnectionsCut.HandshakeTimeouts},
		{"connection_drop_count", st.ConnectionsCut.total()},
		{"bytes_received_count", st.BytesReceived},
		{"response_bytes", st.BytesSent},
		{"connection_request_count", st.SessionsOpened},
		{"request_throttle_wait_count", st.RequestsThrottled},
		{"stale_sessions_expired", st.SessionsExpired},
		{"unrecoverable_error_count", st.StorageErrors},
		{"unsuccessful_handshake", st.TLSHandshakeFailures},
	}
}

func (c ConnectionsCut) total() int64 {
	return c.SlowReaders + c.HandshakeTimeouts + c.FrameTooLong + c.Broken
}

// timings are ZooKeeper's summaries, in milliseconds.
func timings(st Stats) (rows []row) {
	for _, t := range []struct {
		name      string
		timing    Timing
		quantiles bool
	}{
		{"fsynctime", st.Fsync, false},
		{"snapshottime", st.Snapshots, false},
		{"readlatency", st.Reads, true},
		{"updatelatency", st.Updates, true},
	} {
		tm, average := t.timing, time.Duration(0)
		if tm.Count > 0 {
			average = tm.Sum / time.Duration(tm.Count)
		}
		rows = append(rows, row{"avg_" + t.name, javaMillis(average)}, row{"min_" + t.name, tm.Min.Milliseconds()},
			row{"max_" + t.name, tm.Max.Milliseconds()}, row{"cnt_" + t.name, tm.Count}, row{"sum_" + t.name, tm.Sum.Milliseconds()})
		if t.quantiles {
			rows = append(rows, row{"p50_" + t.name, tm.P50.Milliseconds()}, row{"p95_" + t.name, tm.P95.Milliseconds()},
				row{"p99_" + t.name, tm.P99.Milliseconds()}, row{"p999_" + t.name, tm.P999.Milliseconds()})
		}
	}
	return rows
}

// ownRows are figures that ZooKeeper does not have.
func ownRows(st Stats) []row {
	return []row{
		{"batches", st.Batches},
		{"log_syncs", st.Syncs},
		{"log_bytes", st.LogBytes},
		{"max_turn_time", st.LongestTurn.Milliseconds()},
		{"goroutines", runtime.NumGoroutine()},
		{"slow_readers_cut", st.ConnectionsCut.SlowReaders},
		{"bad_frames_cut", st.ConnectionsCut.FrameTooLong},
		{"watches_refused", st.LimitRefusals.Watches},
		{"nodes_refused", st.LimitRefusals.Nodes},
		{"data_refused", st.LimitRefusals.Data},
		{"sessions_refused", st.LimitRefusals.Sessions},
		{"replies_refused", st.LimitRefusals.Replies},
		{"snapshots_failed", st.SnapshotsFailed},
		{"tls_reload_failures", st.TLSReloadFailures},
	}
}

// wordConf has no secret: keys, digests and passwords are no part of what
// ZooKeeper shows here either.
func (s *Server) wordConf(a *answer) {
	o, plain, secure := &s.opts, 0, -1
	s.mu.Lock()
	for ln := range s.listeners {
		addr, ok := ln.Addr().(*net.TCPAddr)
		if _, isPlain := ln.(*net.TCPListener); ok && isPlain {
			plain = addr.Port
		} else if ok {
			secure = addr.Port
		}
	}
	s.mu.Unlock()
	size, perAddress := s.dirSize(), max(o.MaxClientConns, 0)
	a.text(fmt.Sprintf("clientPort=%d\nsecureClientPort=%d\ndataDir=%s\ndataDirSize=%d\ndataLogDir=%s\ndataLogSize=%d\n",
		plain, secure, o.DataDir, size, o.DataDir, size))
	a.text(fmt.Sprintf("tickTime=%d\nmaxClientCnxns=%d\nminSessionTimeout=%d\nmaxSessionTimeout=%d\nclientPortListenBacklog=-1\nserverId=0\n",
		o.TickTime.Milliseconds(), perAddress, o.MinSessionTimeout.Milliseconds(), o.MaxSessionTimeout.Milliseconds()))
}

func (s *Server) wordDirs(a *answer) {
	size := s.dirSize()
	a.text(fmt.Sprintf("datadir_size: %d\nlogdir_size: %d\n", size, size))
}

// dirSize is the size of the files in the data directory: log and snapshots are
// in the same one. A file that goes meanwhile counts as nothing.
func (s *Server) dirSize() (size int64) {
	if s.opts.DataDir == "" || s.opts.FS != nil {
		return s.Stats().LogBytes
	}
	entries, err := os.ReadDir(s.opts.DataDir)
	if err != nil {
		return 0
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			size += info.Size()
		}
	}
	return size
}

// notTold is Java's word for a property that it does not have.
const notTold = "<not available>"

// wordEnvi has the keys of ZooKeeper in their order, since clients read them by name.
// It does not tell about the user and the directories, since anybody who can connect
// may ask, and there is nothing to tell about Java. ZooKeeper does not show variables of
// the environment either.
func (s *Server) wordEnvi(a *answer) {
	host, err := os.Hostname()
	if err != nil {
		host = "<NA>"
	}
	in, limit := memory()
	a.text("Environment:\n")
	for _, e := range [][2]string{
		{"zookeeper.version", s.opts.version()}, {"host.name", host}, {"go.version", runtime.Version()},
		{"java.version", notTold}, {"java.vendor", notTold}, {"java.home", notTold}, {"java.class.path", notTold},
		{"java.library.path", notTold}, {"java.io.tmpdir", notTold}, {"java.compiler", notTold},
		{"os.name", strings.ToUpper(runtime.GOOS[:1]) + runtime.GOOS[1:]}, {"os.arch", runtime.GOARCH}, {"os.version", notTold},
		{"user.name", notTold}, {"user.home", notTold}, {"user.dir", notTold},
		{"os.memory.free", fmt.Sprintf("%dMB", in[1]>>20)}, {"os.memory.max", fmt.Sprintf("%dMB", limit>>20)},
		{"os.memory.total", fmt.Sprintf("%dMB", (in[0]-in[1])>>20)},
	} {
		a.text(e[0] + "=" + e[1] + "\n")
	}
}

// memory is what the runtime has from the system in all, the part of it that
// it has given back, and the limit that was set for it.
func memory() (in [2]uint64, limit uint64) {
	samples := []metrics.Sample{
		{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}, {Name: "/gc/gomemlimit:bytes"},
	}
	metrics.Read(samples)
	return [2]uint64{samples[0].Value.Uint64(), samples[1].Value.Uint64()}, samples[2].Value.Uint64()
}
