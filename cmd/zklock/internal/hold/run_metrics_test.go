package hold

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock/cmd/zklock/internal/clitest"
)

// TestRunMetrics checks the counter of each outcome. Only a run that acquired the lock or started
// the command changes the metrics of that.
func TestRunMetrics(t *testing.T) {
	at := time.UnixMilli(1_700_000_000_500)
	zero, one := 0, 1
	for _, c := range []struct {
		st     statusLine
		want   []string
		absent []string
	}{
		{statusLine{Outcome: outcomeExited, Code: &zero, Acquired: true, Started: true, Waited: 0.5, Held: 2},
			[]string{`zklock_runs_total{lock="/l",outcome="succeeded"} 1`, `zklock_run_last_success_timestamp_seconds{lock="/l"} 1.7000000005e+09`, `zklock_run_running{lock="/l"} 0`,
				`zklock_run_last_wait_seconds{lock="/l"} 0.5`, `zklock_run_hold_seconds_sum{lock="/l"} 2`, `zklock_runs_total{lock="/l",outcome="lost"} 0`}, nil},
		{statusLine{Outcome: outcomeExited, Exit: 1, Code: &one, Acquired: true, Started: true},
			[]string{`zklock_runs_total{lock="/l",outcome="exited"} 1`, `zklock_run_last_exit_code{lock="/l"} 1`}, []string{"last_success"}},
		{statusLine{Outcome: outcomeNotAcquired},
			[]string{`zklock_runs_total{lock="/l",outcome="not_acquired"} 1`, `zklock_run_last_exit_code{lock="/l"} 0`, `zklock_run_last_attempt_timestamp_seconds{lock="/l"} 1.7000000005e+09`},
			[]string{"last_success", "_running", "wait_seconds", "hold_seconds"}},
		{statusLine{Outcome: outcomeNotFound, Exit: 127}, []string{`zklock_runs_total{lock="/l",outcome="not_found"} 1`}, []string{"_running"}},
		{statusLine{Outcome: outcomeLost, Exit: 120, Acquired: true, Started: true}, []string{`zklock_runs_total{lock="/l",outcome="lost"} 1`}, []string{"last_success"}},
	} {
		m := runMetrics{path: filepath.Join(t.TempDir(), "x.prom")}
		if err := m.begin("/l"); err != nil {
			t.Fatal(err)
		}
		m.ended(&c.st, at)
		b, err := os.ReadFile(m.path)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range c.want {
			if !slices.Contains(strings.Split(string(b), "\n"), want) {
				t.Errorf("%s: no line %s in\n%s", c.st.Outcome, want, b)
			}
		}
		for _, absent := range c.absent {
			if strings.Contains(string(b), absent) {
				t.Errorf("%s: there is %s in\n%s", c.st.Outcome, absent, b)
			}
		}
	}
}

// TestRunMetricsInOrder checks that the metrics of the start, which are written in the
// background, do not overwrite those of the end.
func TestRunMetricsInOrder(t *testing.T) {
	for range 20 {
		m := runMetrics{path: filepath.Join(t.TempDir(), "x.prom")}
		if err := m.begin("/l"); err != nil {
			t.Fatal(err)
		}
		m.started(time.Now())
		m.ended(&statusLine{Outcome: outcomeLost, Started: true}, time.Now())
		b, err := os.ReadFile(m.path)
		if err != nil || !strings.Contains(string(b), "zklock_run_running{lock=\"/l\"} 0\n") {
			t.Fatalf("the run is over, and the file says (%v)\n%s", err, b)
		}
	}
}

// TestRunOutcomesAreCounted checks that each outcome of the status line has a counter that begins
// at 0.
func TestRunOutcomesAreCounted(t *testing.T) {
	for _, o := range []string{outcomeExited, outcomeSignalled, outcomeLost, outcomeNotAcquired, outcomeInterrupted, outcomeNotFound, outcomeNotExecutable, outcomeFailed} {
		if !slices.Contains(runOutcomes(), strings.ReplaceAll(o, "-", "_")) {
			t.Errorf("%s is not among the metrics' outcomes", o)
		}
	}
}

// TestNoMetrics checks that nothing is written without a file, or for an invalid command line.
func TestNoMetrics(t *testing.T) {
	none := runMetrics{}
	if err := none.begin("/l"); err != nil {
		t.Error(err)
	}
	none.started(time.Now())
	none.ended(&statusLine{Outcome: outcomeLost}, time.Now())
	refused := runMetrics{path: filepath.Join(t.TempDir(), "x.prom")}
	refused.ended(&statusLine{Outcome: outcomeUsage}, time.Now())
	if _, err := os.Stat(refused.path); err == nil {
		t.Error("an invalid command line was counted")
	}
	if err := (&runMetrics{path: "x.txt"}).begin("/l"); err == nil || !strings.Contains(err.Error(), ErrTextfileName.Error()) {
		t.Errorf("a file with another ending: %v", err)
	}
}

// The start and the end of a run do not both warn that the file cannot be written. The error
// may name a temporary file, which has another name each time.
func TestRunMetricsWarnOnce(t *testing.T) {
	for _, name := range []string{"none/x.prom", strings.Repeat("x", 245) + ".prom"} {
		m := runMetrics{path: filepath.Join(t.TempDir(), filepath.FromSlash(name))}
		if err := m.begin("/l"); err != nil {
			t.Fatal(err)
		}
		printed := clitest.Stderr(t, func() {
			m.started(time.Now())
			m.ended(&statusLine{Outcome: outcomeLost, Started: true}, time.Now())
		})
		if strings.Count(printed, "zklock: --metrics "+m.path+": ") != 1 {
			t.Errorf("printed %q", printed)
		}
	}
}
