package bench

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"
)

// someRows returns rows like those of a run: all recipes with these waiters, where a
// release of the first versions wakes all.
func someRows(waiters ...int) (rows []Row) {
	for _, n := range waiters {
		for _, r := range Recipes() {
			row := Row{Recipe: r, Waiters: n, Sessions: n + 1}
			cost := Traffic{Woken: 1, Notifications: 1, Own: 1, Requests: 2, Bytes: int64(300 + 20*n)}
			if r.Edition == First {
				cost = Traffic{Woken: int64(n), Notifications: int64(n), Requests: int64(n + 1), Bytes: int64(300 + 20*n*n)}
			}
			for i := range 4 {
				row.count(cost, Traffic{Requests: 3}, time.Duration(n*(10-i))*time.Microsecond)
			}
			rows = append(rows, row)
		}
	}
	return rows
}

func TestRowCounts(t *testing.T) {
	row := Row{}
	if row.Median() != 0 || row.Slowest() != 0 || row.PerRelease() != (Figures{}) || row.PerArrival() != (Figures{}) {
		t.Error("a row without releases has figures")
	}
	for _, n := range []int64{5, 3, 10} {
		row.count(Traffic{Woken: n, Notifications: n, Own: 1, Requests: 2, Bytes: 100 * n}, Traffic{Bytes: 3}, time.Duration(n))
	}
	if row.Fewest != 3 || row.Most != 10 || row.Median() != 5 || row.Slowest() != 10 || row.Releases != 3 {
		t.Errorf("%+v", row)
	}
	if got, want := row.PerRelease(), (Figures{Woken: 6, Notifications: 6, Own: 1, Requests: 2, Bytes: 600}); got != want {
		t.Errorf("%+v a release, want %+v", got, want)
	}
	if got := row.PerArrival().Bytes; got != 3 {
		t.Errorf("%v bytes an arrival, want 3", got)
	}
	row.note("one %d", 1)
	row.note("two")
	if row.Note != "one 1; two" {
		t.Errorf("note %q", row.Note)
	}
}

func TestTable(t *testing.T) {
	var rows []Row
	for _, r := range someRows(10, 100) {
		if r.Recipe.Name == "one-node" || r.Recipe.Name == "zklock-mutex" {
			rows = append(rows, r)
		}
	}
	rows[0].note("11 contenders share 5 sessions")
	rows[1].note("11 contenders share 5 sessions")
	rows[3] = Row{Recipe: rows[3].Recipe, Waiters: 100, Err: ErrBudget}
	var out strings.Builder
	if err := WriteTable(&out, rows); err != nil {
		t.Fatal(err)
	}
	want := `What one release costs, in the mean, and how long it takes to the next grant:

WAITERS  RECIPE        WOKEN  REQUESTS    BYTES  MEDIAN  SLOWEST  WOKEN BY ARRIVAL
     10  one-node         10        11  2.30 kB   90 us   100 us                 0  #######
     10  zklock-mutex      1         2    500 B   90 us   100 us                 0  #

    100  one-node        100       101   200 kB  900 us  1.00 ms                 0  #############
    100  zklock-mutex      -         -        -       -        -                 -

one-node      all watch the one znode and race to create it
zklock-mutex  this module's Mutex
10 waiters, one-node, zklock-mutex: 11 contenders share 5 sessions
100 waiters, zklock-mutex: failed: herd: the budget was over; give more time or fewer waiters
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
	out.Reset()
	if err := WriteTable(&out, nil); err != nil || !strings.Contains(out.String(), "WAITERS") {
		t.Errorf("without rows: %q, %v", out.String(), err)
	}
}

func TestJSON(t *testing.T) {
	rows := someRows(10)
	rows[1].Err = ErrExclusion
	rows[2].Note = "a note"
	out, err := json.Marshal(View("here", rows))
	if err != nil {
		t.Fatal(err)
	}
	var doc document
	if err := json.Unmarshal(out, &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Servers != "here" || len(doc.Rows) != len(rows) {
		t.Fatalf("%d rows of %q", len(doc.Rows), doc.Servers)
	}
	for i, r := range doc.Rows {
		if r != rows[i].view() {
			t.Errorf("%+v, want %+v", r, rows[i].view())
		}
	}
	if r := doc.Rows[0]; r.Recipe != "one-node" || r.PerRelease.Notifications != 10 || r.Median != 90 || r.Error != "" || r.Note != "" {
		t.Errorf("%+v", r)
	}
	if doc.Rows[1].Error == "" || doc.Rows[2].Note != "a note" {
		t.Errorf("errors and notes are not told: %+v", doc.Rows[1:3])
	}
	if out, err := json.Marshal(View("", nil)); err != nil || !strings.Contains(string(out), `"rows":[]`) {
		t.Errorf("without rows: %s, %v", out, err)
	}
}

// drawn returns the points of each line of a picture, by the id of its group.
func drawn(t *testing.T, svg []byte) (lines map[string][][2]float64, texts []string) {
	t.Helper()
	lines = make(map[string][][2]float64)
	id := ""
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		token, err := d.Token()
		if err == io.EOF {
			return lines, texts
		}
		if err != nil {
			t.Fatalf("the picture is not well-formed: %v\n%s", err, svg)
		}
		switch e := token.(type) {
		case xml.CharData:
			texts = append(texts, string(e))
		case xml.StartElement:
			for _, a := range e.Attr {
				switch {
				case e.Name.Local == "g" && a.Name.Local == "id":
					id = a.Value
				case e.Name.Local == "polyline" && a.Name.Local == "points":
					lines[id] = points(t, a.Value)
				}
			}
		}
	}
}

// points parses the points of a line, which must be inside the picture.
func points(t *testing.T, s string) (all [][2]float64) {
	t.Helper()
	for _, pair := range strings.Fields(s) {
		var at [2]float64
		for i, coordinate := range strings.SplitN(pair, ",", 2) {
			v, err := strconv.ParseFloat(coordinate, 64)
			if err != nil || math.IsNaN(v) || v < 0 || v > 2000 {
				t.Fatalf("the point %q is nowhere", pair)
			}
			at[i] = v
		}
		all = append(all, at)
	}
	return all
}

// TestSVG checks that the picture is well-formed, that it has a line for each recipe and
// metric with a point for each number of waiters, and that the lines of the first versions
// rise while the others are level.
func TestSVG(t *testing.T) {
	waiters := []int{1, 10, 100, 1000}
	var out bytes.Buffer
	if err := WriteSVG(&out, `a "caption" & <more>`, someRows(waiters...)); err != nil {
		t.Fatal(err)
	}
	lines, texts := drawn(t, out.Bytes())
	for _, r := range Recipes() {
		for _, m := range metrics() {
			if got := lines[m.id+"-"+r.Name]; len(got) != len(waiters) {
				t.Errorf("%s of %s has %d points, want %d", m.id, r.Name, len(got), len(waiters))
			}
		}
		line := lines["woken-"+r.Name]
		for i := 1; i < len(line); i++ {
			rise := line[i-1][1] - line[i][1]
			if r.Edition == First != (rise > 30) || r.Edition != First && rise != 0 {
				t.Errorf("%s rises by %.1f from %d to %d waiters", r.Name, rise, waiters[i-1], waiters[i])
			}
			if line[i][0] <= line[i-1][0] {
				t.Errorf("%s goes back at %d waiters", r.Name, waiters[i])
			}
		}
		if all := strings.Join(texts, "\n"); !strings.Contains(all, r.Name) || !strings.Contains(all, r.About) {
			t.Errorf("the picture does not say what %s is", r.Name)
		}
	}
	if all := strings.Join(texts, "\n"); !strings.Contains(all, `a "caption" & <more>`) {
		t.Errorf("the caption is not there: %s", all)
	}
}

// TestSVGOfAnyRowsIsValid checks that any rows result in a valid picture.
func TestSVGOfAnyRowsIsValid(t *testing.T) {
	one := someRows(10)[:1]
	none := Row{Recipe: one[0].Recipe, Waiters: 100, Err: errors.New("failed")}
	silent := Row{Recipe: Recipes()[3], Waiters: 10}
	silent.count(Traffic{}, Traffic{}, 0)
	for name, rows := range map[string][]Row{
		"nothing": nil, "one row": one, "without figures": {none}, "a failure between": append(someRows(1), none, one[0]), "zeros": {silent},
	} {
		var out bytes.Buffer
		if err := WriteSVG(&out, name, rows); err != nil {
			t.Fatal(err)
		}
		lines, _ := drawn(t, out.Bytes())
		for id, line := range lines {
			if name == "without figures" && len(line) != 0 {
				t.Errorf("%s: %s has points", name, id)
			}
		}
		if (len(lines) == 0) != (len(rows) == 0) {
			t.Errorf("%s: %d lines of %d rows", name, len(lines), len(rows))
		}
	}
}

func TestScale(t *testing.T) {
	s := scale{low: 0, high: 3, from: 100, to: 400}
	for v, want := range map[float64]float64{1: 100, 10: 200, 1000: 400, 1e6: 400, 0: 100, 0.1: 100} {
		if got := s.at(v); math.Abs(got-want) > 1e-9 {
			t.Errorf("%v is at %v, want %v", v, got, want)
		}
	}
	if got := fmt.Sprint(s.decades()); got != "[1 10 100 1000]" {
		t.Errorf("decades %s", got)
	}
	if got := (scale{1, 1, 0, 10}).at(10); got != 5 {
		t.Errorf("the only value is at %v, want the middle", got)
	}
}

func TestTicks(t *testing.T) {
	all := metrics()
	for _, tt := range []struct {
		metric int
		v      float64
		want   string
	}{{0, 1000, "1000"}, {1, 1, "1 B"}, {1, 1000, "1 kB"}, {1, 1e7, "10 MB"}, {2, 1e-6, "1 us"}, {2, 1e-2, "10 ms"}, {2, 1, "1 s"}} {
		if got := all[tt.metric].tick(tt.v); got != tt.want {
			t.Errorf("%s: %v is labelled %q, want %q", all[tt.metric].id, tt.v, got, tt.want)
		}
	}
}

// closed is a writer that always fails.
type closed struct{}

func (closed) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// TestOutputErrorsAreReturned checks that an error of the output is returned.
func TestOutputErrorsAreReturned(t *testing.T) {
	rows := someRows(1)
	for name, err := range map[string]error{
		"table": WriteTable(closed{}, rows), "svg": WriteSVG(closed{}, "", rows),
	} {
		if !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
