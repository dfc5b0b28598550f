package sim

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// A Run has the results of many worlds: a line of the file of totals.
type Run struct {
	Date       string // of its end, as year-month-day and UTC hour:minute
	Commit     string // of the code, with "+" if there were uncommitted changes
	From, To   uint64 // seeds, both included
	Violations int    // seeds that broke a rule
	Unknown    int    // seeds without a result
	Stats
}

// columns are the columns of the file of totals, separated by tabs.
const columns = "date\tcommit\tfrom\tto\tsimulated\toperations\tacquired\tfaults\tviolations\tunknown\tfaults by kind"

// String returns the run as a line of the file of totals, without the newline.
func (r *Run) String() string {
	var kinds []string
	for k, n := range r.ByFault {
		kinds = append(kinds, fmt.Sprintf("%v %d", faultKind(k), n))
	}
	return fmt.Sprintf("%s\t%s\t%d\t%d\t%v\t%d\t%d\t%d\t%d\t%d\t%s", r.Date, r.Commit, r.From, r.To, r.Simulated.Round(time.Second),
		r.Requests, r.Acquired, r.Faults, r.Violations, r.Unknown, strings.Join(kinds, ", "))
}

// tooLittle returns a count that is too low, or "". If there are enough seeds, every kind of
// lock and every kind of fault must have happened.
func (r *Run) tooLittle() string {
	const seedsForAll = 200
	n := int(r.To - r.From + 1)
	switch {
	case r.Seeds != n:
		return fmt.Sprintf("%d seeds of %d", r.Seeds, n)
	case r.Acquired < 100*n || r.Faults < 50*n || r.Requests < 1000*n || r.Simulated < time.Duration(n)*5*time.Minute:
		return fmt.Sprintf("%d acquired, %d faults, %d operations, %v in %d seeds", r.Acquired, r.Faults, r.Requests, r.Simulated, n)
	case n < seedsForAll:
		return ""
	case r.GivenUp < n || r.Renewed < n:
		return fmt.Sprintf("%d given up, %d renewed in %d seeds", r.GivenUp, r.Renewed, n)
	case r.Alone < n:
		return fmt.Sprintf("%d times a lock was used by one client in %d seeds", r.Alone, n)
	case r.Marked < n || r.MarkEvents < n/2:
		return fmt.Sprintf("%d releases marked, %d events of marks in %d seeds", r.Marked, r.MarkEvents, n)
	case r.Batched < 10*n || r.Undone < n/10:
		return fmt.Sprintf("%d batched, %d undone in %d seeds", r.Batched, r.Undone, n)
	}
	for k, of := range r.ByKind {
		if of < n {
			return fmt.Sprintf("%d times %v", of, claimKind(k))
		}
	}
	for k, of := range r.ByFault {
		if of < n/20 {
			return fmt.Sprintf("%d times the fault %v", of, faultKind(k))
		}
	}
	return ""
}

// Totals are the sums of a file of totals.
type Totals struct {
	Runs, Operations, Acquired, Faults, Violations, Unknown int
	Simulated                                               time.Duration
	Next                                                    uint64 // the seed after the last one
}

// String returns the sums in one line.
func (t *Totals) String() string {
	const year = 365 * 24 * time.Hour
	return fmt.Sprintf("%d runs, next seed %d: %.3f years simulated, %d operations, %d acquired, %d faults, %d violations, %d unknown",
		t.Runs, t.Next, float64(t.Simulated)/float64(year), t.Operations, t.Acquired, t.Faults, t.Violations, t.Unknown)
}

// ReadTotals sums the runs in a file of totals. It skips empty lines, lines that begin with
// #, and the line with the columns.
func ReadTotals(r io.Reader) (t Totals, err error) {
	t.Next = 1
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		if line == "" || line[0] == '#' || line == columns {
			continue
		}
		if err := t.add(strings.Split(line, "\t")); err != nil {
			return t, fmt.Errorf("sim: totals, line %d: %w", n, err)
		}
	}
	return t, lines.Err()
}

// add adds a run.
func (t *Totals) add(field []string) error {
	if want := strings.Count(columns, "\t") + 1; len(field) != want {
		return fmt.Errorf("%d columns, want %d", len(field), want)
	}
	to, err := strconv.ParseUint(field[3], 10, 64)
	if err != nil {
		return err
	}
	simulated, err := time.ParseDuration(field[4])
	if err != nil {
		return err
	}
	for i, sum := range []*int{&t.Operations, &t.Acquired, &t.Faults, &t.Violations, &t.Unknown} {
		n, err := strconv.Atoi(field[5+i])
		if err != nil {
			return err
		}
		*sum += n
	}
	t.Runs++
	t.Simulated += simulated
	t.Next = max(t.Next, to+1)
	return nil
}
