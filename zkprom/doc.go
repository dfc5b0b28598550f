// Package zkprom exports Prometheus metrics of a zklock.Client's locks and of a
// zkserver.Server.
//
// # Locks
//
// [Locks] counts a program's own locks with the client's hooks: the duration of waits and
// holds, the length of the queue, the outcomes of acquires, and the reasons of losses. It
// also exports the current holds and waits, and the state of the session, including the age
// of its last heartbeat. All names begin with zklock_lock_ or zklock_client_. Hooks run in
// their own goroutine: no acquire waits for the metrics.
//
// # The server
//
// If the PrometheusMetricsProvider of Apache ZooKeeper has the same metric, the metric has
// its name, type, and unit, so that dashboards and alerts for ZooKeeper work. These are gauges such
// as znode_count, watch_count, outstanding_requests, and num_alive_connections; counters
// such as connection_rejected, without the suffix _total; and summaries in milliseconds
// such as fsynctime and updatelatency, with quantiles of the last one to two minutes.
// Metrics of ensembles and of Java's internal queues are missing.
//
// All other metrics begin with zklock_ and follow Prometheus's conventions: seconds,
// _total, and histograms.
//
// A scrape waits for the current batch of requests, and delays the server no longer than
// the four-letter word mntr does.
package zkprom
