package zkprom

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/zklock/zklock/zkserver"
)

// metric is a metric from Stats.
type metric struct {
	desc *prometheus.Desc
	emit func(desc *prometheus.Desc, st *zkserver.Stats, ch chan<- prometheus.Metric)
}

// collector collects the metrics of a server's Stats.
type collector struct {
	stats   func() zkserver.Stats
	metrics []metric
}

// NewCollector returns a collector of the server's metrics. It is safe for concurrent use.
// After the end of the server, it keeps the last values. The metrics have no label for the
// server: with several servers in one process, use prometheus.WrapRegistererWith.
func NewCollector(s *zkserver.Server) prometheus.Collector { return newCollector(s.Stats) }

func newCollector(stats func() zkserver.Stats) *collector {
	c := &collector{stats: stats}
	for _, group := range [][]metric{gauges(), counters(), summaries(), ownGauges(), ownCounters(), histograms()} {
		c.metrics = append(c.metrics, group...)
	}
	return c
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for i := range c.metrics {
		ch <- c.metrics[i].desc
	}
}

// Collect implements prometheus.Collector. All values are from one moment.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	st := c.stats()
	for i := range c.metrics {
		c.metrics[i].emit(c.metrics[i].desc, &st, ch)
	}
}

// single returns a metric with one value.
func single(kind prometheus.ValueType, name, help string, value func(*zkserver.Stats) float64) metric {
	return metric{
		desc: prometheus.NewDesc(name, help, nil, nil),
		emit: func(desc *prometheus.Desc, st *zkserver.Stats, ch chan<- prometheus.Metric) {
			ch <- prometheus.MustNewConstMetric(desc, kind, value(st))
		},
	}
}

func gauge(name, help string, value func(*zkserver.Stats) float64) metric {
	return single(prometheus.GaugeValue, name, help, value)
}

func counter(name, help string, value func(*zkserver.Stats) float64) metric {
	return single(prometheus.CounterValue, name, help, value)
}

// labelled returns a counter with one value for each value of a label.
func labelled(name, help, label string, values func(*zkserver.Stats) map[string]int64) metric {
	return metric{
		desc: prometheus.NewDesc(name, help, []string{label}, nil),
		emit: func(desc *prometheus.Desc, st *zkserver.Stats, ch chan<- prometheus.Metric) {
			for text, n := range values(st) {
				ch <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(n), text)
			}
		},
	}
}
