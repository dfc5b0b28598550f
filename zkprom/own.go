package zkprom

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/zklock/zklock/zkserver"
)

// The metrics of this file are zklock's own.

func ownGauges() []metric {
	type st = *zkserver.Stats
	return []metric{
		gauge("zklock_read_only", "1 while the storage has failed and only reads are answered.", func(s st) float64 {
			if s.ReadOnly {
				return 1
			}
			return 0
		}),
		gauge("zklock_container_nodes", "Container nodes.", func(s st) float64 { return float64(s.Containers) }),
		gauge("zklock_ttl_nodes", "Nodes with a time to live.", func(s st) float64 { return float64(s.TTLs) }),
		gauge("zklock_watching_connections", "Connections that watch anything.", func(s st) float64 { return float64(s.Watchers) }),
		gauge("zklock_watched_paths", "Paths that are watched.", func(s st) float64 { return float64(s.WatchedPaths) }),
		gauge("zklock_log_bytes", "Size of the log on disk.", func(s st) float64 { return float64(s.LogBytes) }),
		gauge("zklock_longest_turn_seconds", "Longest time for which one connection kept the server from all others.", func(s st) float64 { return s.LongestTurn.Seconds() }),
		gauge("zklock_recovery_seconds", "How long the start took to read the data directory.", func(s st) float64 { return s.Recovery.Seconds() }),
	}
}

func ownCounters() []metric {
	type st = *zkserver.Stats
	return []metric{
		counter("zklock_connections_accepted_total", "Connections admitted.", func(s st) float64 { return float64(s.ConnectionsAccepted) }),
		labelled("zklock_connections_refused_total", "Connections refused, by the limit.", "limit", func(s st) map[string]int64 {
			r := s.ConnectionsRefused
			return map[string]int64{"per_address": r.TooManyPerAddress, "total": r.TooManyConns, "accept": r.ByAccept}
		}),
		labelled("zklock_connections_cut_total", "Connections that the server ended, by the reason.", "reason", func(s st) map[string]int64 {
			c := s.ConnectionsCut
			return map[string]int64{"slow_reader": c.SlowReaders, "handshake_timeout": c.HandshakeTimeouts, "bad_frame": c.FrameTooLong, "broken": c.Broken}
		}),
		labelled("zklock_limit_refusals_total", "Requests refused because the server is full, by what of.", "limit", func(s st) map[string]int64 {
			l := s.LimitRefusals
			return map[string]int64{"watches": l.Watches, "nodes": l.Nodes, "data": l.Data, "sessions": l.Sessions, "replies": l.Replies}
		}),
		counter("zklock_reads_paused_total", "Times that reading from a connection paused until the server had caught up.", func(s st) float64 { return float64(s.RequestsThrottled) }),
		counter("zklock_sessions_opened_total", "Sessions opened.", func(s st) float64 { return float64(s.SessionsOpened) }),
		counter("zklock_sessions_expired_total", "Sessions that timed out.", func(s st) float64 { return float64(s.SessionsExpired) }),
		counter("zklock_auth_failures_total", "Proofs of identity that failed.", func(s st) float64 { return float64(s.AuthFailures) }),
		counter("zklock_auth_delays_total", "Proofs of identity that had to wait, since their address had shown many.", func(s st) float64 { return float64(s.AuthDelays) }),
		counter("zklock_tls_handshake_failures_total", "TLS handshakes that failed.", func(s st) float64 { return float64(s.TLSHandshakeFailures) }),
		labelled("zklock_tls_reloads_total", "Changes of certificate files, by whether they could be taken up.", "result", func(s st) map[string]int64 {
			return map[string]int64{"ok": s.TLSReloads, "failed": s.TLSReloadFailures}
		}),
		counter("zklock_batches_total", "Batches of requests; each has one sync at most.", func(s st) float64 { return float64(s.Batches) }),
		counter("zklock_log_written_bytes_total", "Bytes written to the log.", func(s st) float64 { return float64(s.LogWritten) }),
		labelled("zklock_snapshots_total", "Snapshots, by whether they could be written.", "result", func(s st) map[string]int64 {
			return map[string]int64{"ok": s.SnapshotsWritten, "failed": s.SnapshotsFailed}
		}),
		counter("zklock_storage_errors_total", "Failures of the storage.", func(s st) float64 { return float64(s.StorageErrors) }),
	}
}

func histograms() []metric {
	type st = *zkserver.Stats
	return []metric{
		histogram("zklock_fsync_duration_seconds", "Time of a sync of the log, the write included.", nil, func(s st) []*zkserver.Timing { return []*zkserver.Timing{&s.Fsync} }),
		histogram("zklock_snapshot_duration_seconds", "Time of a snapshot.", nil, func(s st) []*zkserver.Timing { return []*zkserver.Timing{&s.Snapshots} }),
		histogram("zklock_request_duration_seconds", "Time from the read of a request until its answer may leave.", []string{"read", "update"},
			func(s st) []*zkserver.Timing { return []*zkserver.Timing{&s.Reads, &s.Updates} }),
	}
}

// histogram has one series for each kind, or a single one without a label.
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
