package storm

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock/test/history"
)

// TestTotals: what is added up is added up, and is one line and one row.
func TestTotals(t *testing.T) {
	done := history.Floor{
		Acquired: 1, Waited: 2, Refused: 3, Cancelled: 4, Lost: 5, Unknown: 6, Lowered: 7, Reentered: 8, Expired: 9,
		Meddled: 10, Written: 11, Stale: 12, Waiting: 13,
	}
	var a, b Totals
	a.Add(&Verdict{Done: done, Margins: []time.Duration{3, 1}, Longest: time.Second, Violations: []string{"x"}, Unknown: 1})
	a.Add(&Verdict{Done: done, Margins: []time.Duration{2}, Longest: time.Minute})
	a.count("cut", 2)
	a.Rounds = 1
	b.Join(&a)
	b.Join(&a)
	want := history.Floor{
		Acquired: 4, Waited: 8, Refused: 12, Cancelled: 16, Lost: 20, Unknown: 24, Lowered: 28, Reentered: 32, Expired: 36,
		Meddled: 40, Written: 44, Stale: 48, Waiting: 52,
	}
	if b.Done != want || b.Acquired != 4 || b.Violations != 2 || b.Unknown != 2 || b.Rounds != 2 || b.Longest != time.Minute {
		t.Errorf("%+v", b)
	}
	if len(b.Margins) != 6 || !slices.IsSorted(b.Margins) {
		t.Errorf("margins %v", b.Margins)
	}
	if s := b.String(); !strings.HasPrefix(s, "acquisitions=4 faults=4 kinds=1 violations=2 unknown=2 rounds=2 ") || strings.Contains(s, "\n") {
		t.Error(s)
	}
	if s := b.Table(); s != "     4  cut\n" {
		t.Errorf("%q", s)
	}
	row := b.Row(time.Date(2030, 2, 1, 0, 0, 0, 0, time.UTC), "abc", "go test")
	if row != "| 2030-02-01 | abc | `go test` | 4 | 4 | 1 | 2 | 2 |\n" {
		t.Errorf("%q", row)
	}
}

// TestMarginsAreThinned: the ends of the margins stay, however many there are.
func TestMarginsAreThinned(t *testing.T) {
	var a Totals
	var all []time.Duration
	for i := range 30_000 {
		all = append(all, time.Duration(i))
	}
	a.Add(&Verdict{Margins: all})
	if n := len(a.Margins); n > 20_000 || !slices.IsSorted(a.Margins) || a.Margins[0] != 0 || a.Margins[n-1] != 29_999 {
		t.Errorf("%d margins, from %v to %v", n, a.Margins[0], a.Margins[n-1])
	}
}

// TestAppendRow: a file that is not there gets its head once.
func TestAppendRow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "totals.md")
	for _, row := range []string{"| a |\n", "| b |\n"} {
		if err := AppendRow(path, row); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil || string(text) != tableHead+"| a |\n| b |\n" {
		t.Errorf("%q, %v", text, err)
	}
	if err := AppendRow(t.TempDir(), "| a |\n"); err == nil {
		t.Error("a directory is no file")
	}
}
