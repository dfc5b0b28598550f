package faults

import (
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock/test/model"
)

// Totals are the sums of runs.
type Totals struct {
	Acquired   int // locks
	Violations int
	Unknown    int            // searches that took too long
	Faults     map[string]int // how often each fault happened
	Done       model.Floor
	Margins    []time.Duration // between the end of a hold and the next
	Longest    time.Duration   // longest wait without a holder after all faults
	Rounds     int
	Guarded    int // writes under the guard of a hold
}

// Add adds a verdict.
func (t *Totals) Add(v *Verdict) {
	t.Acquired += v.Done.Acquired
	t.Violations += len(v.Violations)
	t.Unknown += v.Unknown
	t.Longest = max(t.Longest, v.Longest)
	t.Margins = append(t.Margins, v.Margins...)
	slices.Sort(t.Margins)
	if n := len(t.Margins); n > 10_000 {
		// Keep both ends, and every second margin in the middle.
		mid := t.Margins[1000 : n-1000]
		thin := slices.Clone(t.Margins[:1000])
		for i := 0; i < len(mid); i += 2 {
			thin = append(thin, mid[i])
		}
		t.Margins = append(thin, t.Margins[n-1000:]...)
	}
	t.Done.Add(v.Done)
}

// Join adds other totals.
func (t *Totals) Join(o *Totals) {
	t.Add(&Verdict{Done: o.Done, Unknown: o.Unknown, Margins: o.Margins, Longest: o.Longest})
	t.Violations += o.Violations
	t.Rounds += o.Rounds
	t.Guarded += o.Guarded
	for name, n := range o.Faults {
		t.count(name, n)
	}
}

// count counts a fault that has happened.
func (t *Totals) count(fault string, n int) {
	if t.Faults == nil {
		t.Faults = map[string]int{}
	}
	t.Faults[fault] += n
}

// total returns how many faults have happened.
func (t *Totals) total() int {
	n := 0
	for _, times := range t.Faults {
		n += times
	}
	return n
}

// String returns one line. Its numbers are sums.
func (t *Totals) String() string {
	return fmt.Sprintf("acquisitions=%d faults=%d kinds=%d violations=%d unknown=%d rounds=%d waited=%d refused=%d cancelled=%d lost=%d "+
		"unconfirmed=%d written=%d stale=%d guarded=%d expired=%d tampered=%d longest-wait=%v",
		t.Acquired, t.total(), len(t.Faults), t.Violations, t.Unknown, t.Rounds, t.Done.Waited, t.Done.Refused, t.Done.Cancelled, t.Done.Lost,
		t.Done.Unknown, t.Done.Written, t.Done.Stale, t.Guarded, t.Done.Expired, t.Done.Tampered, t.Longest.Round(time.Millisecond))
}

// Table returns how often each fault happened.
func (t *Totals) Table() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(t.Faults)) {
		fmt.Fprintf(&b, "%6d  %s\n", t.Faults[name], name)
	}
	return b.String()
}

// tableHead is the beginning of a file of rows.
const tableHead = `# Runs under faults

Each row is one run. The numbers of all rows can be added up.

| date | commit | command | acquisitions | faults | kinds | violations | unknown |
|---|---|---|---|---|---|---|---|
`

// Row returns the run as a row of a Markdown table.
func (t *Totals) Row(date time.Time, commit, command string) string {
	return fmt.Sprintf("| %s | %s | `%s` | %d | %d | %d | %d | %d |\n",
		date.UTC().Format(time.DateOnly), commit, command, t.Acquired, t.total(), len(t.Faults), t.Violations, t.Unknown)
}

// AppendRow appends a row to a file, and creates the file if it does not exist.
func AppendRow(path, row string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if size, err := f.Seek(0, io.SeekEnd); err != nil {
		return err
	} else if size == 0 {
		row = tableHead + row
	}
	if _, err := io.WriteString(f, row); err != nil {
		return err
	}
	return f.Close()
}

// commit returns the version of the source in the working directory.
func commit() string {
	out, err := exec.Command("git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

// TestTotalsAddUp checks that totals are summed, and printed as one line and one row.
func TestTotalsAddUp(t *testing.T) {
	done := model.Floor{
		Acquired: 1, Waited: 2, Refused: 3, Cancelled: 4, Lost: 5, Unknown: 6, Downgraded: 7, Reentered: 8, Expired: 9,
		Tampered: 10, Written: 11, Stale: 12, Waiting: 13,
	}
	var a, b Totals
	a.Add(&Verdict{Done: done, Margins: []time.Duration{3, 1}, Longest: time.Second, Violations: []string{"x"}, Unknown: 1})
	a.Add(&Verdict{Done: done, Margins: []time.Duration{2}, Longest: time.Minute})
	a.count("cut", 2)
	a.Rounds = 1
	b.Join(&a)
	b.Join(&a)
	want := model.Floor{
		Acquired: 4, Waited: 8, Refused: 12, Cancelled: 16, Lost: 20, Unknown: 24, Downgraded: 28, Reentered: 32, Expired: 36,
		Tampered: 40, Written: 44, Stale: 48, Waiting: 52,
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

// TestMarginsAreThinned checks that the smallest and largest margins are kept.
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

// TestAppendRowWritesHeadOnce checks that a new file gets its head once.
func TestAppendRowWritesHeadOnce(t *testing.T) {
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
