package zkprom

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/zklock/zklock/zkserver"
)

// The metrics in this file have ZooKeeper's names.

// millis returns a duration in milliseconds, as in ZooKeeper's metrics.
func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// gauges returns the metrics of ZooKeeperServer.registerMetrics. There, packets_received
// and similar ones are gauges too, because "srst" resets them.
func gauges() []metric {
	type st = *zkserver.Stats
	return []metric{
		gauge("avg_latency", "Average time of a request in ms, since the last srst.", func(s st) float64 { return millis(s.LatencyAverage) }),
		gauge("max_latency", "Longest time of a request in ms, since the last srst.", func(s st) float64 { return millis(s.LatencyMax) }),
		gauge("min_latency", "Shortest time of a request in ms, since the last srst.", func(s st) float64 { return millis(s.LatencyMin) }),
		gauge("packets_received", "Requests read, since the last srst.", func(s st) float64 { return float64(s.Received) }),
		gauge("packets_sent", "Replies and events sent, since the last srst.", func(s st) float64 { return float64(s.Sent) }),
		gauge("num_alive_connections", "Open connections.", func(s st) float64 { return float64(s.Connections) }),
		gauge("outstanding_requests", "Requests read and not yet answered.", func(s st) float64 { return float64(s.Outstanding) }),
		gauge("uptime", "Time since the start in ms.", func(s st) float64 { return millis(s.Uptime) }),
		gauge("znode_count", "Nodes, the root twice, as ZooKeeper counts.", func(s st) float64 { return float64(s.Nodes + 1) }),
		gauge("watch_count", "Watches.", func(s st) float64 { return float64(s.Watches) }),
		gauge("ephemerals_count", "Ephemeral nodes.", func(s st) float64 { return float64(s.Ephemerals) }),
		gauge("approximate_data_size", "Size of all paths and data in bytes.", func(s st) float64 { return float64(s.DataBytes) }),
		gauge("global_sessions", "Sessions.", func(s st) float64 { return float64(s.Sessions) }),
		gauge("local_sessions", "Always 0.", func(st) float64 { return 0 }),
		gauge("connection_drop_probability", "Always 0: connections are not dropped at random.", func(st) float64 { return 0 }),
		gauge("last_client_response_size", "Size of the last reply in bytes, -1 for none.", func(s st) float64 { return float64(s.ReplyLast) }),
		gauge("max_client_response_size", "Size of the largest reply in bytes, -1 for none.", func(s st) float64 { return float64(s.ReplyMax) }),
		gauge("min_client_response_size", "Size of the smallest reply in bytes, -1 for none.", func(s st) float64 { return float64(s.ReplyMin) }),
		gauge("auth_failed_count", "Failed authentications.", func(s st) float64 { return float64(s.AuthFailures) }),
	}
}

// counters returns the metrics of ServerMetrics that apply here.
func counters() []metric {
	type st = *zkserver.Stats
	return []metric{
		counter("connection_rejected", "Connections refused because of a limit.", func(s st) float64 {
			return float64(s.ConnectionsRefused.TooManyPerAddress + s.ConnectionsRefused.TooManyConns)
		}),
		counter("connection_drop_count", "Connections that the server closed.", func(s st) float64 {
			c := &s.ConnectionsCut
			return float64(c.SlowReaders + c.HandshakeTimeouts + c.FrameTooLong + c.Broken)
		}),
		counter("connection_request_count", "Sessions opened.", func(s st) float64 { return float64(s.SessionsOpened) }),
		counter("sessionless_connections_expired", "Connections closed because they sent no connect request.", func(s st) float64 { return float64(s.ConnectionsCut.HandshakeTimeouts) }),
		counter("stale_sessions_expired", "Sessions that timed out.", func(s st) float64 { return float64(s.SessionsExpired) }),
		counter("bytes_received_count", "Bytes of requests.", func(s st) float64 { return float64(s.BytesReceived) }),
		counter("response_bytes", "Bytes of replies and events.", func(s st) float64 { return float64(s.BytesSent) }),
		counter("request_throttle_wait_count", "Number of times that the server paused reading from a connection.", func(s st) float64 { return float64(s.RequestsThrottled) }),
		counter("unrecoverable_error_count", "Storage failures.", func(s st) float64 { return float64(s.StorageErrors) }),
		counter("unsuccessful_handshake", "TLS handshakes that failed.", func(s st) float64 { return float64(s.TLSHandshakeFailures) }),
	}
}

// summaries returns the metrics in ms. As in ZooKeeper, the basic ones have only the
// median.
func summaries() []metric {
	type st = *zkserver.Stats
	return []metric{
		summary("fsynctime", "Time of a sync of the log in ms.", false, func(s st) *zkserver.Timing { return &s.Fsync }),
		summary("snapshottime", "Time of a snapshot in ms.", false, func(s st) *zkserver.Timing { return &s.Snapshots }),
		summary("readlatency", "Time of a request that changes nothing in ms.", true, func(s st) *zkserver.Timing { return &s.Reads }),
		summary("updatelatency", "Time of a request that changes something in ms.", true, func(s st) *zkserver.Timing { return &s.Updates }),
	}
}

func summary(name, help string, advanced bool, timing func(*zkserver.Stats) *zkserver.Timing) metric {
	return metric{
		desc: prometheus.NewDesc(name, help, nil, nil),
		emit: func(desc *prometheus.Desc, st *zkserver.Stats, ch chan<- prometheus.Metric) {
			t := timing(st)
			quantiles := map[float64]float64{0.5: millis(t.P50)}
			if advanced {
				quantiles[0.95], quantiles[0.99] = millis(t.P95), millis(t.P99)
			}
			ch <- prometheus.MustNewConstSummary(desc, t.Count, millis(t.Sum), quantiles)
		},
	}
}
