// Package zkprom exports to Prometheus what a zkserver.Server counts, and what
// becomes of the locks of a zklock.Client.
//
// # Locks
//
// [Locks] counts a program's own locks by the client's hooks: how long acquires
// waited and holds lasted, how many were ahead, how acquires ended and why holds
// were lost; what is held and waited for at the moment; and how the session does,
// the age of its last heartbeat above all. All names begin with zklock_lock_ or
// zklock_client_. Hooks have a goroutine of their own: no acquire waits for the
// metrics.
//
// # The server
//
// Where Apache ZooKeeper's own PrometheusMetricsProvider has a metric, it has
// its name, type and unit here, so that dashboards and alerts for ZooKeeper go
// on working: gauges such as znode_count, watch_count, outstanding_requests and
// num_alive_connections, counters such as connection_rejected (without the
// suffix _total, as there), and summaries in milliseconds such as fsynctime and
// updatelatency, whose quantiles are of the last one to two minutes. What
// belongs to ensembles or to Java's inner queues is missing.
//
// Everything else begins with zklock_ and follows Prometheus's conventions:
// seconds, _total, and real histograms.
//
// A scrape waits for the batch of requests under way in the server and holds
// it up no longer than the four-letter word mntr does.
package zkprom
