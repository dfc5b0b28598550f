package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/zklock/zklock/cmd/zklock/internal/textfile"
)

// metricsTime is how long the end of a run waits for its metrics to be written: a
// file system that hangs must not keep the exit code.
const metricsTime = 5 * time.Second

// runMetrics writes what becomes of a run for the node exporter's textfile
// collector. The zero value does nothing. What goes wrong is a warning, and
// changes nothing about the run.
type runMetrics struct {
	path string
	lock string        // "" where there is nothing to write
	last chan struct{} // closed when what was written last is; nil before
}

// begin is for a run that has come so far that it can be counted. It refuses a
// file that nobody would read.
func (m *runMetrics) begin(lock string) error {
	if m.path == "" {
		return nil
	}
	if err := textfile.Check(m.path); err != nil {
		return usage("--metrics %s: %w", m.path, err)
	}
	m.lock = lock
	return nil
}

// started notes that the command runs, without waiting for it to be written: from
// now on there is a command to watch.
func (m *runMetrics) started(at time.Time) {
	m.update(func(s *textfile.Set) {
		s.Put("zklock_run_running", m.lock, 1)
		s.Put("zklock_run_last_start_timestamp_seconds", m.lock, unix(at))
	})
}

// ended notes what became of the run.
func (m *runMetrics) ended(st *statusLine, at time.Time) {
	if m.lock == "" {
		return
	}
	end := *st
	m.update(func(s *textfile.Set) { end.count(s, m.lock, at) })
	select {
	case <-m.last:
	case <-time.After(metricsTime):
		warn("--metrics %s: it could not be written within %v", m.path, metricsTime)
	}
}

// update changes the file, after the change before. The goroutine ends when that is
// done, or with the process.
func (m *runMetrics) update(change func(*textfile.Set)) {
	if m.lock == "" {
		return
	}
	before, done := m.last, make(chan struct{})
	m.last = done
	go func() {
		defer close(done)
		if before != nil {
			<-before
		}
		if err := textfile.Update(m.path, change); err != nil {
			warn("--metrics %s: %v", m.path, err)
		}
	}()
}

// unix is a time as Prometheus has it.
func unix(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

// runOutcomes are those of zklock_runs_total: the status line's, but that a command
// that exited with 0 has succeeded.
func runOutcomes() []string {
	return []string{"succeeded", "exited", "signalled", "lost", "not_acquired", "interrupted", "not_found", "not_executable", "failed"}
}

// count adds a run that has ended to what a file says.
func (s *statusLine) count(to *textfile.Set, lock string, at time.Time) {
	outcome := strings.ReplaceAll(s.Outcome, "-", "_")
	if s.Outcome == outcomeExited && s.Exit == 0 {
		outcome = "succeeded"
		to.Put("zklock_run_last_success_timestamp_seconds", lock, unix(at))
	}
	to.Count(lock, outcome, runOutcomes())
	to.Put("zklock_run_last_attempt_timestamp_seconds", lock, unix(at))
	to.Put("zklock_run_last_exit_code", lock, float64(s.Exit))
	if s.Started { // one that did not start says nothing of another that runs
		to.Put("zklock_run_running", lock, 0)
	}
	if !s.Acquired {
		return
	}
	for name, v := range map[string]float64{"wait": s.Waited, "hold": s.Held} {
		to.Put(fmt.Sprintf("zklock_run_last_%s_seconds", name), lock, v)
		to.Add(fmt.Sprintf("zklock_run_%s_seconds_sum", name), lock, v)
		to.Add(fmt.Sprintf("zklock_run_%s_seconds_count", name), lock, 1)
	}
}
