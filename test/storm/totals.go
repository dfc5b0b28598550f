package storm

import (
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/zklock/zklock/test/history"
)

// Totals are what runs add up to.
type Totals struct {
	Acquired   int // locks that were taken
	Violations int
	Unknown    int            // histories that could not be judged
	Faults     map[string]int // how often each has happened
	Done       history.Floor
	Margins    []time.Duration // between the end of a hold and the next
	Longest    time.Duration   // wait with nothing in the way, once healed
	Rounds     int
}

// Add takes a verdict in.
func (t *Totals) Add(v *Verdict) {
	t.Acquired += v.Done.Acquired
	t.Violations += len(v.Violations)
	t.Unknown += v.Unknown
	t.Longest = max(t.Longest, v.Longest)
	t.Margins = append(t.Margins, v.Margins...)
	slices.Sort(t.Margins)
	if n := len(t.Margins); n > 10_000 {
		// The ends are what matters; of the midst every second one will do.
		mid := t.Margins[1000 : n-1000]
		thin := slices.Clone(t.Margins[:1000])
		for i := 0; i < len(mid); i += 2 {
			thin = append(thin, mid[i])
		}
		t.Margins = append(thin, t.Margins[n-1000:]...)
	}
	add := func(to *int, n int) { *to += n }
	d, w := &t.Done, v.Done
	add(&d.Acquired, w.Acquired)
	add(&d.Waited, w.Waited)
	add(&d.Refused, w.Refused)
	add(&d.Cancelled, w.Cancelled)
	add(&d.Lost, w.Lost)
	add(&d.Unknown, w.Unknown)
	add(&d.Lowered, w.Lowered)
	add(&d.Reentered, w.Reentered)
	add(&d.Expired, w.Expired)
	add(&d.Meddled, w.Meddled)
	add(&d.Written, w.Written)
	add(&d.Stale, w.Stale)
	add(&d.Waiting, w.Waiting)
}

// Join adds another's totals.
func (t *Totals) Join(o *Totals) {
	t.Add(&Verdict{Done: o.Done, Unknown: o.Unknown, Margins: o.Margins, Longest: o.Longest})
	t.Violations += o.Violations
	t.Rounds += o.Rounds
	for name, n := range o.Faults {
		t.count(name, n)
	}
}

// count notes that a fault has happened.
func (t *Totals) count(fault string, n int) {
	if t.Faults == nil {
		t.Faults = map[string]int{}
	}
	t.Faults[fault] += n
}

// total is how many faults have happened.
func (t *Totals) total() int {
	n := 0
	for _, times := range t.Faults {
		n += times
	}
	return n
}

// String is one line, whose numbers can be added up.
func (t *Totals) String() string {
	return fmt.Sprintf("acquisitions=%d faults=%d kinds=%d violations=%d unknown=%d rounds=%d waited=%d refused=%d cancelled=%d lost=%d "+
		"unconfirmed=%d written=%d stale=%d expired=%d meddled=%d longest-wait=%v",
		t.Acquired, t.total(), len(t.Faults), t.Violations, t.Unknown, t.Rounds, t.Done.Waited, t.Done.Refused, t.Done.Cancelled, t.Done.Lost,
		t.Done.Unknown, t.Done.Written, t.Done.Stale, t.Done.Expired, t.Done.Meddled, t.Longest.Round(time.Millisecond))
}

// Table says how often each fault has happened.
func (t *Totals) Table() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(t.Faults)) {
		fmt.Fprintf(&b, "%6d  %s\n", t.Faults[name], name)
	}
	return b.String()
}

// tableHead begins a file of rows.
const tableHead = `# Faults survived

Each row is one run: what was taken, what was done to those who took it, and what was found.
The numbers of all rows can be added up.

| date | commit | command | acquisitions | faults | kinds | violations | unknown |
|---|---|---|---|---|---|---|---|
`

// Row is the run as a line of a Markdown table.
func (t *Totals) Row(date time.Time, commit, command string) string {
	return fmt.Sprintf("| %s | %s | `%s` | %d | %d | %d | %d | %d |\n",
		date.UTC().Format(time.DateOnly), commit, command, t.Acquired, t.total(), len(t.Faults), t.Violations, t.Unknown)
}

// AppendRow appends a row to a file, which it makes if there is none.
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

// commit is the version of the source that the working directory is in.
func commit() string {
	out, err := exec.Command("git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}
