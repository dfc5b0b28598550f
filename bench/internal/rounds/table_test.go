package rounds

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{9, 1, 2}, 2}, {[]float64{4, 1, 2, 100}, 3}} {
		if got := Median(c.values); got != c.want {
			t.Errorf("%v: %v, want %v", c.values, got, c.want)
		}
	}
}

// filled returns a table of two contenders with three rounds.
func filled() *Table {
	table := NewTable([]string{"a", "b"}, Row{Name: "rate", Unit: "1/s", More: true, Goal: 2}, Row{Name: "alone", Unit: "B"}, Row{Name: "time", Unit: "ms", Goal: 1})
	for _, s := range [][]Sample{
		{{"rate": 100, "alone": 7, "time": 12}, {"rate": 300, "time": 3}},
		{{"rate": 10, "alone": 8, "time": 0}, {"rate": 20, "time": 4}},
		{{"rate": 1000, "alone": 9, "time": 16}, {"rate": 1000, "time": 4}},
	} {
		if err := table.add(s); err != nil {
			panic(err)
		}
	}
	table.Finish()
	return table
}

func TestRatioIsMedianOfRounds(t *testing.T) {
	r := filled().Rows
	// Rounds with the ratios 3, 2 and 1: the ratio of the medians would be 3.
	if r[0].Ratios[1] != 2 || r[0].Medians[0] != 100 || r[0].Medians[1] != 300 {
		t.Errorf("rate: ratios %v, medians %v", r[0].Ratios, r[0].Medians)
	}
	if r[1].Ratios[1] != 0 || r[1].Medians[1] != 0 {
		t.Errorf("a row of one contender: ratios %v, medians %v", r[1].Ratios, r[1].Medians)
	}
	// A round whose base is 0 has no ratio.
	if r[2].Ratios[1] != 0.25 {
		t.Errorf("time: ratios %v", r[2].Ratios)
	}
}

func TestWriteText(t *testing.T) {
	var b strings.Builder
	if err := filled().WriteText(&b); err != nil {
		t.Fatal(err)
	}
	want := `| row   | unit | a    | b    | b/a  | goal |
|---    |---   |---   |---   |---   |---   |
| rate  | 1/s  | 100  | 300  | 2.00 | >= 2 |
| alone | B    | 8.00 | -    | -    |      |
| time  | ms   | 12.0 | 4.00 | 0.25 | <= 1 |
`
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}

func TestWriteJSON(t *testing.T) {
	var b strings.Builder
	if err := filled().WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	var back Table
	if err := json.Unmarshal([]byte(b.String()), &back); err != nil {
		t.Fatal(err)
	}
	if len(back.Rows) != 3 || back.Rows[0].Ratios[1] != 2 || len(back.Rows[0].Values[1]) != 3 {
		t.Errorf("read back %+v", back)
	}
}
