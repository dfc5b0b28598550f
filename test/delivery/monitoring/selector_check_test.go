package monitoring

import (
	"fmt"
	"testing"
)

func TestSelectorsOfExpressions(t *testing.T) {
	for expr, want := range map[string]string{
		`up`:                                     `[{up []}]`,
		`increase(a_total{x="1",y!~"2|3"}[10m])`: `[{a_total [[x = 1] [y !~ 2|3]]}]`,
		`sum by (a, b) (rate(c[5m])) > 1e3 * 60s`:                   `[{c []}]`,
		`a > 5 and on (job) time() - b_sum{x=~"y"} offset 5m`:       `[{a []} {b_sum [[x =~ y]]}]`,
		`histogram_quantile(0.9, sum by (le) (rate(d_bucket[1h])))`: `[{d_bucket []}]`,
		`time()`: `[]`,
	} {
		if got := fmt.Sprint(selectors(expr)); got != want {
			t.Errorf("%s: %s, want %s", expr, got, want)
		}
	}
}

func TestCheckReportsMissingMetrics(t *testing.T) {
	m := metrics{}
	if n := m.read("# HELP a b\na{x=\"1\",y=\"\\\"2\"} 5\nb 1e-05\nnot a line {\n"); n != 2 {
		t.Errorf("%d series", n)
	}
	for expr, wrong := range map[string]bool{`a`: false, `a{x="1"}`: false, `a{job="j"} + b`: false, `c`: true, `a{z="1"}`: true, `a{x="2"}`: true, `a{x!="2"}`: true, `a{x=~"2"}`: false, `1`: true} {
		if got := m.check(expr); len(got) > 0 != wrong {
			t.Errorf("%s: found %q, want something: %v", expr, got, wrong)
		}
	}
}
