package hold

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// ErrTextfileForeign means that the file has content that this package does not write and
// would delete.
var ErrTextfileForeign = errors.New("the file has other content than the metrics of zklock run; use another file")

// parseTextfile parses what Textfile.text wrote. An empty file counts as a missing one.
func parseTextfile(text string) (Textfile, error) {
	p := expfmt.NewTextParser(model.LegacyValidation)
	found, err := p.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("%w (%w)", ErrTextfileForeign, err)
	}
	s := Textfile{}
	known := families()
	for name, mf := range found {
		i := slices.IndexFunc(known, func(f family) bool { return f.name == name && f.kind == mf.GetType() })
		if i < 0 {
			return nil, fmt.Errorf("%w (%.80q)", ErrTextfileForeign, name)
		}
		for _, m := range mf.GetMetric() {
			if err := s.addMetric(known[i], m); err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}

// addMetric adds a metric of a family.
func (s Textfile) addMetric(f family, m *dto.Metric) error {
	k := series{name: f.series()}
	for _, l := range m.GetLabel() {
		switch l.GetName() {
		case "lock":
			k.lock = l.GetValue()
		case "outcome":
			k.outcome = l.GetValue()
		default:
			return fmt.Errorf("%w (the label %.80q)", ErrTextfileForeign, l.GetName())
		}
	}
	v := 0.0
	switch f.kind {
	case dto.MetricType_GAUGE:
		v = m.GetGauge().GetValue()
	case dto.MetricType_COUNTER:
		v = m.GetCounter().GetValue()
	case dto.MetricType_SUMMARY:
		v = m.GetSummary().GetSampleSum()
		count := k
		count.name = f.name + "_count"
		s[count] = float64(m.GetSummary().GetSampleCount())
	}
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return fmt.Errorf("%w (%s is %v)", ErrTextfileForeign, f.name, v)
	}
	s[k] = v
	return nil
}
