package zkprom

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/zklock/zklock/zkserver"
)

// The metrics in this file are specific to zklock.

func ownGauges() []metric {
	type st = *zkserver.Stats
	return []metric{
		gauge("zklock_read_only", "1 if the storage has failed, so that the server only answers reads.", func(s st) float64 {
			if s.ReadOnly {
				return 1
			}
			return 0
		}),
		gauge("zklock_container_nodes", "Container nodes.", func(s st) float64 { return float64(s.Containers) }),
		gauge("zklock_ttl_nodes", "Nodes with a time to live.", func(s st) float64 { return float64(s.TTLs) }),
		gauge("zklock_watching_connections", "Connections with watches.", func(s st) float64 { return float64(s.Watchers) }),
		gauge("zklock_watched_paths", "Paths with watches.", func(s st) float64 { return float64(s.WatchedPaths) }),
		gauge("zklock_log_bytes", "Size of the log on disk.", func(s st) float64 { return float64(s.LogBytes) }),
		gauge("zklock_longest_turn_seconds", "Longest time that the server spent on one connection in a row.", func(s st) float64 { return s.LongestTurn.Seconds() }),
		gauge("zklock_recovery_seconds", "Time that the start took to read the data directory.", func(s st) float64 { return s.Recovery.Seconds() }),
	}
}

func ownCounters() []metric {
	type st = *zkserver.Stats
	return []metric{
		counter("zklock_connections_accepted_total", "Connections admitted.", func(s st) float64 { return float64(s.ConnectionsAccepted) }),
		labelled("zklock_connections_refused_total", "Connections refused, by limit.", "limit", func(s st) map[string]int64 {
			r := s.ConnectionsRefused
			return map[string]int64{"per_address": r.TooManyPerAddress, "total": r.TooManyConns, "accept": r.ByAccept}
		}),
		labelled("zklock_connections_cut_total", "Connections that the server closed, by reason.", "reason", func(s st) map[string]int64 {
			c := s.ConnectionsCut
			return map[string]int64{"slow_reader": c.SlowReaders, "handshake_timeout": c.HandshakeTimeouts, "bad_frame": c.FrameTooLong, "broken": c.Broken}
		}),
		labelled("zklock_limit_refusals_total", "Requests refused because of a limit, by limit.", "limit", func(s st) map[string]int64 {
			l := s.LimitRefusals
			return map[string]int64{"watches": l.Watches, "nodes": l.Nodes, "data": l.Data, "sessions": l.Sessions, "replies": l.Replies}
		}),
		counter("zklock_reads_paused_total", "Number of times that the server paused reading from a connection to catch up.", func(s st) float64 { return float64(s.RequestsThrottled) }),
		counter("zklock_sessions_opened_total", "Sessions opened.", func(s st) float64 { return float64(s.SessionsOpened) }),
		counter("zklock_sessions_expired_total", "Sessions that timed out.", func(s st) float64 { return float64(s.SessionsExpired) }),
		counter("zklock_auth_failures_total", "Failed authentications.", func(s st) float64 { return float64(s.AuthFailures) }),
		counter("zklock_auth_delays_total", "Authentications that were delayed because of many failures from their address.", func(s st) float64 { return float64(s.AuthDelays) }),
		counter("zklock_tls_handshake_failures_total", "TLS handshakes that failed.", func(s st) float64 { return float64(s.TLSHandshakeFailures) }),
		labelled("zklock_tls_reloads_total", "Reloads of changed certificate files, by result.", "result", func(s st) map[string]int64 {
			return map[string]int64{"ok": s.TLSReloads, "failed": s.TLSReloadFailures}
		}),
		counter("zklock_batches_total", "Batches of requests. Each has at most one sync.", func(s st) float64 { return float64(s.Batches) }),
		counter("zklock_log_written_bytes_total", "Bytes written to the log.", func(s st) float64 { return float64(s.LogWritten) }),
		labelled("zklock_snapshots_total", "Snapshots, by result.", "result", func(s st) map[string]int64 {
			return map[string]int64{"ok": s.SnapshotsWritten, "failed": s.SnapshotsFailed}
		}),
		counter("zklock_storage_errors_total", "Storage failures.", func(s st) float64 { return float64(s.StorageErrors) }),
	}
}

func histograms() []metric {
	type st = *zkserver.Stats
	return []metric{
		histogram("zklock_fsync_duration_seconds", "Duration of a write and sync of the log.", nil, func(s st) []*zkserver.Timing { return []*zkserver.Timing{&s.Fsync} }),
		histogram("zklock_snapshot_duration_seconds", "Duration of a snapshot.", nil, func(s st) []*zkserver.Timing { return []*zkserver.Timing{&s.Snapshots} }),
		histogram("zklock_request_duration_seconds", "Time from reading a request until its response may be sent.", []string{"read", "update"},
			func(s st) []*zkserver.Timing { return []*zkserver.Timing{&s.Reads, &s.Updates} }),
	}
}

// histogram returns a histogram with one series for each kind, or a single one without a
// label.
func histogram(name, help string, kinds []string, timings func(*zkserver.Stats) []*zkserver.Timing) metric {
	var labels []string
	if kinds != nil {
		labels = []string{"kind"}
	}
	return metric{
		desc: prometheus.NewDesc(name, help, labels, nil),
		emit: func(desc *prometheus.Desc, st *zkserver.Stats, ch chan<- prometheus.Metric) {
			for i, t := range timings(st) {
				buckets, below := map[float64]uint64{}, uint64(0)
				for _, b := range t.Buckets {
					below += b.Count
					buckets[b.UpTo.Seconds()] = below
				}
				var values []string
				if kinds != nil {
					values = kinds[i : i+1]
				}
				ch <- prometheus.MustNewConstHistogram(desc, t.Count, t.Sum.Seconds(), buckets, values...)
			}
		},
	}
}
