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

// The four-letter words about the server, not its connections.

// row is a line of mntr.
type row struct {
	key   string
	value any
}

func (s *Server) wordMntr(a *answer) {
	st := s.Stats()
	for _, rows := range [][]row{gauges(st), tallies(st), timings(st), zklockRows(st)} {
		for _, r := range rows {
			a.text(fmt.Sprintf("zk_%s\t%v\n", r.key, r.value))
		}
	}
}

// gauges returns the gauges of every ZooKeeper server, under its names
// (ZooKeeperServer.registerMetrics).
func gauges(st Stats) []row {
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

// tallies returns the counters of ZooKeeper's ServerMetrics that have a meaning here. Those
// about quorums and about queues between Java's processors have none.
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

// timings returns ZooKeeper's summaries, in milliseconds.
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

// zklockRows returns figures that ZooKeeper does not have.
func zklockRows(st Stats) []row {
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

// wordConf shows no secrets: like ZooKeeper's, it has no keys, digests, or passwords.
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

// dirSize returns the size of the files in the data directory, which contains log and
// snapshots. A file that is removed meanwhile counts as 0.
func (s *Server) dirSize() (size int64) {
	if s.opts.DataDir == "" || s.opts.setup.FS != nil {
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

// notAvailable is Java's text for a property that it does not have.
const notAvailable = "<not available>"

// wordEnvi shows ZooKeeper's keys in their order, since clients read them by name. It does
// not show the user and the directories, since any client that can connect may ask, and it
// has nothing to show about Java. Like ZooKeeper's, it shows no environment variables.
func (s *Server) wordEnvi(a *answer) {
	host, err := os.Hostname()
	if err != nil {
		host = "<NA>"
	}
	in, limit := memoryStats()
	a.text("Environment:\n")
	for _, e := range [][2]string{
		{"zookeeper.version", version}, {"host.name", host}, {"go.version", runtime.Version()},
		{"java.version", notAvailable}, {"java.vendor", notAvailable}, {"java.home", notAvailable}, {"java.class.path", notAvailable},
		{"java.library.path", notAvailable}, {"java.io.tmpdir", notAvailable}, {"java.compiler", notAvailable},
		{"os.name", strings.ToUpper(runtime.GOOS[:1]) + runtime.GOOS[1:]}, {"os.arch", runtime.GOARCH}, {"os.version", notAvailable},
		{"user.name", notAvailable}, {"user.home", notAvailable}, {"user.dir", notAvailable},
		{"os.memory.free", fmt.Sprintf("%dMB", in[1]>>20)}, {"os.memory.max", fmt.Sprintf("%dMB", limit>>20)},
		{"os.memory.total", fmt.Sprintf("%dMB", (in[0]-in[1])>>20)},
	} {
		a.text(e[0] + "=" + e[1] + "\n")
	}
}

// memoryStats returns the memory that the runtime obtained from the system, the part that
// it has returned, and its memory limit.
func memoryStats() (in [2]uint64, limit uint64) {
	samples := []metrics.Sample{
		{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}, {Name: "/gc/gomemlimit:bytes"},
	}
	metrics.Read(samples)
	return [2]uint64{samples[0].Value.Uint64(), samples[1].Value.Uint64()}, samples[2].Value.Uint64()
}
