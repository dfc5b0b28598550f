package sim

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestReadTotalsSumsRuns checks that ReadTotals sums the lines of runs.
func TestReadTotalsSumsRuns(t *testing.T) {
	a := Run{Date: "2026-01-02 03:04", Commit: "abc", From: 1, To: 200, Stats: Stats{
		Seeds: 200, Simulated: 90 * time.Minute, Requests: 7, Acquired: 5, Faults: 3}}
	b := Run{Date: "2026-01-03 03:04", Commit: "abd+", From: 201, To: 300, Violations: 1, Unknown: 2, Stats: Stats{
		Seeds: 100, Simulated: 30 * time.Minute, Requests: 70, Acquired: 50, Faults: 30}}
	text := "# a comment\n\n" + columns + "\n" + a.String() + "\n" + b.String() + "\n"
	got, err := ReadTotals(strings.NewReader(text))
	want := Totals{Runs: 2, Operations: 77, Acquired: 55, Faults: 33, Violations: 1, Unknown: 2, Simulated: 2 * time.Hour, Next: 301}
	if err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range []string{"x", strings.Replace(a.String(), "1h30m0s", "long", 1), strings.Replace(a.String(), "200", "-1", 1),
		strings.Replace(a.String(), "\t7\t", "\tmany\t", 1)} {
		if _, err := ReadTotals(strings.NewReader(bad)); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

func TestRunWithTooFewEventsFails(t *testing.T) {
	enough := Run{From: 1, To: 200, Stats: Stats{Seeds: 200, Acquired: 1 << 20, Faults: 1 << 20, Requests: 1 << 20, Simulated: time.Hour * 100, GivenUp: 1 << 20, Renewed: 1 << 20, Alone: 1 << 20, Marked: 1 << 20, MarkEvents: 1 << 20, Batched: 1 << 20, Undone: 1 << 20}}
	for k := range enough.ByKind {
		enough.ByKind[k] = 1000
	}
	for k := range enough.ByFault {
		enough.ByFault[k] = 1000
	}
	if s := enough.tooLittle(); s != "" {
		t.Fatal(s)
	}
	for name, spoil := range map[string]func(r *Run){
		"seeds":         func(r *Run) { r.Seeds-- },
		"acquired":      func(r *Run) { r.Acquired = 100 },
		"faults":        func(r *Run) { r.Faults = 100 },
		"operations":    func(r *Run) { r.Requests = 100 },
		"batched":       func(r *Run) { r.Batched = 100 },
		"undone":        func(r *Run) { r.Undone = 0 },
		"time":          func(r *Run) { r.Simulated = time.Hour },
		"hand-overs":    func(r *Run) { r.GivenUp = 100 },
		"renewals":      func(r *Run) { r.Renewed = 100 },
		"use alone":     func(r *Run) { r.Alone = 100 },
		"marks":         func(r *Run) { r.Marked = 100 },
		"kind of lock":  func(r *Run) { r.ByKind[aNode] = 0 },
		"kind of fault": func(r *Run) { r.ByFault[bitFlip] = 0 },
	} {
		r := enough
		spoil(&r)
		if r.tooLittle() == "" {
			t.Errorf("too little of %s is enough", name)
		}
	}
}

// totalsFile has the totals of all recorded runs.
var totalsFile = filepath.Join("testdata", "totals.tsv")

// TestRecordedTotals sums the recorded runs and checks that none has seeds without a result.
// docs/how-zklock-is-tested.md describes their findings.
func TestRecordedTotals(t *testing.T) {
	sums := readTotals(t, totalsFile)
	t.Log(sums.String())
	if sums.Runs == 0 || sums.Unknown > 0 {
		t.Errorf("%+v", sums)
	}
}

// readTotals reads a file of totals.
func readTotals(t *testing.T, file string) Totals {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sums, err := ReadTotals(f)
	if err != nil {
		t.Fatal(err)
	}
	return sums
}
