package zkprom

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
)

// lockMetrics are the metrics that the hooks update.
type lockMetrics struct {
	wait, hold, queue          *prometheus.HistogramVec
	acquires, releases, losses *prometheus.CounterVec
	jeopardies                 *prometheus.CounterVec
}

func newLockMetrics(buckets []float64) lockMetrics {
	// A vector does not check the buckets before its first use, which is in a hook, while a lock is
	// held.
	prometheus.NewHistogram(prometheus.HistogramOpts{Buckets: buckets})
	histogram := func(name, help string, buckets []float64) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, []string{"lock", "mode"})
	}
	counter := func(name, help string, more ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, append([]string{"lock", "mode"}, more...))
	}
	return lockMetrics{
		wait:       histogram("zklock_lock_wait_seconds", "Duration of successful acquires.", buckets),
		hold:       histogram("zklock_lock_hold_seconds", "Duration of holds that ended.", buckets),
		queue:      histogram("zklock_lock_queue_length", "Number of entries ahead of an acquire when it was enqueued.", []float64{0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000}),
		acquires:   counter("zklock_lock_acquires_total", "Acquires that ended, by outcome.", "outcome"),
		releases:   counter("zklock_lock_releases_total", "Holds that were released, by the result of the release.", "result"),
		losses:     counter("zklock_lock_losses_total", "Holds that were lost, by reason.", "reason"),
		jeopardies: counter("zklock_lock_jeopardies_total", "Number of times that a hold's heartbeat was overdue."),
	}
}

// all returns the metrics as collectors.
func (m *lockMetrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.wait, m.hold, m.queue, m.acquires, m.releases, m.losses, m.jeopardies}
}

// show creates a lock's series with the value 0.
func (m *lockMetrics) show(lock, mode string) {
	m.wait.WithLabelValues(lock, mode)
	m.hold.WithLabelValues(lock, mode)
	m.queue.WithLabelValues(lock, mode)
	m.jeopardies.WithLabelValues(lock, mode)
	for _, o := range outcomes() {
		m.acquires.WithLabelValues(lock, mode, o)
	}
	for _, r := range reasons() {
		m.losses.WithLabelValues(lock, mode, r)
	}
	for _, r := range []string{"confirmed", "failed"} {
		m.releases.WithLabelValues(lock, mode, r)
	}
}

// lockGauge is computed from the current holds or waits at each scrape.
type lockGauge struct {
	desc  *prometheus.Desc
	held  bool // counts holds; otherwise acquires that wait
	value func(n int, oldest time.Duration) float64
}

func lockGauges() []lockGauge {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, []string{"lock", "mode"}, nil)
	}
	number := func(n int, _ time.Duration) float64 { return float64(n) }
	age := func(_ int, oldest time.Duration) float64 { return oldest.Seconds() }
	return []lockGauge{
		{desc("zklock_lock_held", "Current holds."), true, number},
		{desc("zklock_lock_oldest_hold_seconds", "Age of the oldest current hold; 0 if there is none."), true, age},
		{desc("zklock_lock_waiting", "Acquires that currently wait in the queue."), false, number},
		{desc("zklock_lock_oldest_wait_seconds", "Age of the oldest acquire that waits; 0 if there is none."), false, age},
	}
}

// collectUnderWay sends the gauges of all known locks, also of those without holds, because
// a missing series looks like a failed scrape.
func (m *Locks) collectUnderWay(ch chan<- prometheus.Metric, now time.Time) {
	type figure struct {
		n      int
		oldest time.Duration
	}
	figures := [2]map[lockMode]figure{{}, {}}
	m.mu.Lock()
	for seen := range m.seen {
		figures[0][seen], figures[1][seen] = figure{}, figure{}
	}
	for i, those := range []map[key]underWay{m.waiting, m.held} {
		for _, u := range those {
			f := figures[i][u.lockMode]
			f.n++
			f.oldest = max(f.oldest, now.Sub(u.since))
			figures[i][u.lockMode] = f
		}
	}
	m.mu.Unlock()
	for _, g := range lockGauges() {
		those := figures[0]
		if g.held {
			those = figures[1]
		}
		for n, f := range those {
			ch <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, g.value(f.n, f.oldest), n.lock, n.mode)
		}
	}
}

// sessionMetric is a metric from a client's Health.
type sessionMetric struct {
	desc *prometheus.Desc
	emit func(desc *prometheus.Desc, h *zklock.Health, ch chan<- prometheus.Metric)
}

func sessionMetrics() []sessionMetric {
	single := func(kind prometheus.ValueType, name, help string, value func(*zklock.Health) float64) sessionMetric {
		return sessionMetric{prometheus.NewDesc(name, help, nil, nil), func(desc *prometheus.Desc, h *zklock.Health, ch chan<- prometheus.Metric) {
			ch <- prometheus.MustNewConstMetric(desc, kind, value(h))
		}}
	}
	state := prometheus.NewDesc("zklock_client_session_state", "1 for the current state of the client's session, 0 for the others.", []string{"state"}, nil)
	return []sessionMetric{
		{state, emitStates},
		single(prometheus.GaugeValue, "zklock_client_heartbeat_age_seconds", "Time since the servers last answered a heartbeat. The client sends one every eighth of the session timeout.",
			func(h *zklock.Health) float64 { return h.Heartbeat.Seconds() }),
		single(prometheus.GaugeValue, "zklock_client_session_timeout_seconds", "Negotiated session timeout.",
			func(h *zklock.Health) float64 { return h.Timeout.Seconds() }),
		single(prometheus.GaugeValue, "zklock_client_safe_seconds", "Time until holds are lost if the servers stop answering now.",
			func(h *zklock.Health) float64 { return h.Remaining.Seconds() }),
		single(prometheus.CounterValue, "zklock_client_sessions_total", "Sessions that the client has opened.",
			func(h *zklock.Health) float64 { return float64(h.Sessions) }),
	}
}

// emitStates sends the state of a session.
func emitStates(desc *prometheus.Desc, h *zklock.Health, ch chan<- prometheus.Metric) {
	for s := zk.Disconnected; s <= zk.Closed; s++ {
		value := 0.0
		if s == h.State {
			value = 1
		}
		name := strings.NewReplacer(" ", "_", "-", "_").Replace(s.String())
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, name)
	}
}
