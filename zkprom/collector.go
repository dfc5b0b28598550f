package zkprom

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/zklock/zklock/zkserver"
)

// metric is one that is made from Stats.
type metric struct {
	desc *prometheus.Desc
	emit func(desc *prometheus.Desc, st *zkserver.Stats, ch chan<- prometheus.Metric)
}

// collector makes metrics of a server's Stats.
type collector struct {
	stats   func() zkserver.Stats
	metrics []metric
}

// NewCollector returns a collector of the server's metrics. It may be
// registered once in each registry, and used from any goroutine. After the end
// of the server it shows the last figures. The names have no labels that tell
// servers apart: for several in one process, wrap the registerer by
// prometheus.WrapRegistererWith.
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

// Collect implements prometheus.Collector. All metrics are of one moment.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	st := c.stats()
	for i := range c.metrics {
		c.metrics[i].emit(c.metrics[i].desc, &st, ch)
	}
}

// single is a metric of one value.
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

// labelled is a counter with a value for each value of one label.
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
