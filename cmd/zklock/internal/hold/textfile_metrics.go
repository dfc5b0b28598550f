package hold

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

// family is one metric with its help text.
type family struct {
	name string
	kind dto.MetricType
	help string
}

// families returns all metrics that a file can have, in the order of the file.
func families() []family {
	return []family{
		{"zklock_run_running", dto.MetricType_GAUGE, "1 while the command runs under the lock. If zklock is killed, it stays 1 until the next run."},
		{"zklock_run_last_attempt_timestamp_seconds", dto.MetricType_GAUGE, "When the last run ended, with any outcome."},
		{"zklock_run_last_start_timestamp_seconds", dto.MetricType_GAUGE, "When the command was last started."},
		{"zklock_run_last_success_timestamp_seconds", dto.MetricType_GAUGE, "When the command last exited with 0."},
		{"zklock_run_last_exit_code", dto.MetricType_GAUGE, "Exit code of the last run: that of the command, or that of zklock."},
		{"zklock_run_last_wait_seconds", dto.MetricType_GAUGE, "How long the last run that acquired the lock waited for it."},
		{"zklock_run_last_hold_seconds", dto.MetricType_GAUGE, "How long the last run that acquired the lock held it."},
		{"zklock_run_wait_seconds", dto.MetricType_SUMMARY, "How long the runs that acquired the lock waited for it."},
		{"zklock_run_hold_seconds", dto.MetricType_SUMMARY, "How long the runs held the lock."},
		{"zklock_runs_total", dto.MetricType_COUNTER, "Runs that have ended, by outcome."},
	}
}

// series returns the name of the first series of the family.
func (f family) series() string {
	if f.kind == dto.MetricType_SUMMARY {
		return f.name + "_sum"
	}
	return f.name
}

// series identifies one line of the file.
type series struct {
	name    string // with its suffix
	lock    string
	outcome string // only of zklock_runs_total
}

// Textfile is the content of a file.
type Textfile map[series]float64

// Put sets a metric of a lock.
func (s Textfile) Put(name, lock string, v float64) { s[series{name: name, lock: lock}] = v }

// Add adds to a metric of a lock.
func (s Textfile) Add(name, lock string, v float64) {
	s[series{name: name, lock: lock}] += v
}

// Count counts a run with this outcome. The counters of all other outcomes start at 0,
// because Prometheus computes a rate only for a series that existed before.
func (s Textfile) Count(lock, outcome string, all []string) {
	for _, o := range append(slices.Clone(all), outcome) {
		s[series{"zklock_runs_total", lock, o}] += 0
	}
	s[series{"zklock_runs_total", lock, outcome}]++
}

// countLocks returns the number of locks that have metrics.
func (s Textfile) countLocks() int {
	seen := map[string]bool{}
	for k := range s {
		seen[k.lock] = true
	}
	return len(seen)
}

// text returns the content in the format of the exporter.
func (s Textfile) text() (string, error) {
	keys := slices.SortedFunc(maps.Keys(s), func(a, b series) int {
		return cmp.Or(cmp.Compare(a.lock, b.lock), cmp.Compare(a.outcome, b.outcome), cmp.Compare(a.name, b.name))
	})
	var b strings.Builder
	for _, f := range families() {
		mf := &dto.MetricFamily{Name: &f.name, Help: &f.help, Type: &f.kind}
		for _, k := range keys {
			if k.name == f.series() {
				mf.Metric = append(mf.Metric, s.metric(f, k))
			}
		}
		if len(mf.Metric) == 0 {
			continue
		}
		if _, err := expfmt.MetricFamilyToText(&b, mf); err != nil {
			return "", err
		}
	}
	return b.String(), nil
}

// metric returns one metric of a family. Two series form a summary.
func (s Textfile) metric(f family, k series) *dto.Metric {
	v := s[k]
	m := &dto.Metric{Label: []*dto.LabelPair{{Name: new("lock"), Value: &k.lock}}}
	if k.outcome != "" {
		m.Label = append(m.Label, &dto.LabelPair{Name: new("outcome"), Value: &k.outcome})
	}
	switch f.kind {
	case dto.MetricType_GAUGE:
		m.Gauge = &dto.Gauge{Value: &v}
	case dto.MetricType_COUNTER:
		m.Counter = &dto.Counter{Value: &v}
	case dto.MetricType_SUMMARY:
		k.name = f.name + "_count"
		m.Summary = &dto.Summary{SampleSum: &v, SampleCount: new(uint64(max(0, s[k])))}
	}
	return m
}
