package textfile

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

// family is one metric with its text.
type family struct {
	name     string
	kind     dto.MetricType
	help     string
	suffixes []string // of a summary's series; else one that is empty
}

// families are all that a file may have, in the order in which it has them.
func families() []family {
	one, summary := []string{""}, []string{"_sum", "_count"}
	return []family{
		{"zklock_run_running", dto.MetricType_GAUGE, "1 while the command runs under the lock; it stays so if zklock is killed, until the next run.", one},
		{"zklock_run_last_attempt_timestamp_seconds", dto.MetricType_GAUGE, "When a run last came to its end, whatever became of it.", one},
		{"zklock_run_last_start_timestamp_seconds", dto.MetricType_GAUGE, "When the command was last started.", one},
		{"zklock_run_last_success_timestamp_seconds", dto.MetricType_GAUGE, "When the command last exited with 0.", one},
		{"zklock_run_last_exit_code", dto.MetricType_GAUGE, "What the last run exited with: the command's own code, or zklock's.", one},
		{"zklock_run_last_wait_seconds", dto.MetricType_GAUGE, "How long the last run that got the lock had waited for it.", one},
		{"zklock_run_last_hold_seconds", dto.MetricType_GAUGE, "How long the last run that got the lock held it.", one},
		{"zklock_run_wait_seconds", dto.MetricType_SUMMARY, "How long the runs waited that got the lock.", summary},
		{"zklock_run_hold_seconds", dto.MetricType_SUMMARY, "How long the runs held the lock.", summary},
		{"zklock_runs_total", dto.MetricType_COUNTER, "Runs that came to an end, by what became of them.", one},
	}
}

// Names returns the names of all metrics that a file may have.
func Names() []string {
	var names []string
	for _, f := range families() {
		for _, s := range f.suffixes {
			names = append(names, f.name+s)
		}
	}
	return names
}

// series is what one line is about.
type series struct {
	name    string // with its suffix
	lock    string
	outcome string // of zklock_runs_total alone
}

// Set is what a file says. The zero Set is that of no file.
type Set struct{ values map[series]float64 }

// put sets a value.
func (s *Set) put(k series, v float64) {
	if s.values == nil {
		s.values = map[series]float64{}
	}
	s.values[k] = v
}

// Put sets a lock's metric.
func (s *Set) Put(name, lock string, v float64) { s.put(series{name: name, lock: lock}, v) }

// Add adds to a lock's metric.
func (s *Set) Add(name, lock string, v float64) {
	k := series{name: name, lock: lock}
	s.put(k, s.values[k]+v)
}

// Count counts a run of this outcome. Those of the other outcomes, which are given
// as well, begin at 0: a rate can only be seen of what was once there.
func (s *Set) Count(lock, outcome string, all []string) {
	for _, o := range append(slices.Clone(all), outcome) {
		k := series{"zklock_runs_total", lock, o}
		s.put(k, s.values[k])
	}
	k := series{"zklock_runs_total", lock, outcome}
	s.put(k, s.values[k]+1)
}

// locks are how many the set is about.
func (s *Set) locks() int {
	seen := map[string]bool{}
	for k := range s.values {
		seen[k.lock] = true
	}
	return len(seen)
}

// text is the set as the exporter reads it.
func (s *Set) text() (string, error) {
	keys := slices.SortedFunc(maps.Keys(s.values), func(a, b series) int {
		return cmp.Or(cmp.Compare(a.lock, b.lock), cmp.Compare(a.outcome, b.outcome), cmp.Compare(a.name, b.name))
	})
	var b strings.Builder
	for _, f := range families() {
		mf := f.begin()
		for _, k := range keys {
			if k.name == f.name+f.suffixes[0] {
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

// begin is the family without its metrics.
func (f family) begin() *dto.MetricFamily {
	return &dto.MetricFamily{Name: &f.name, Help: &f.help, Type: &f.kind}
}

// metric is one of a family's. A summary's is made of two series.
func (s *Set) metric(f family, k series) *dto.Metric {
	m, v, lock, outcome := &dto.Metric{}, s.values[k], "lock", "outcome"
	m.Label = append(m.Label, &dto.LabelPair{Name: &lock, Value: &k.lock})
	if k.outcome != "" {
		m.Label = append(m.Label, &dto.LabelPair{Name: &outcome, Value: &k.outcome})
	}
	switch f.kind {
	case dto.MetricType_GAUGE:
		m.Gauge = &dto.Gauge{Value: &v}
	case dto.MetricType_COUNTER:
		m.Counter = &dto.Counter{Value: &v}
	case dto.MetricType_SUMMARY:
		k.name = f.name + "_count"
		n := uint64(max(0, s.values[k]))
		m.Summary = &dto.Summary{SampleSum: &v, SampleCount: &n}
	}
	return m
}
