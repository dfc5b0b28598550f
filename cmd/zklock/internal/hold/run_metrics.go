package hold

import (
	"fmt"
	"strings"
	"time"

	"github.com/zklock/zklock/cmd/zklock/internal/cli"
)

// metricsTime is how long the end of a run waits until its metrics are written. A file
// system that hangs must not delay the exit.
const metricsTime = 5 * time.Second

// runMetrics writes the metrics of a run for the node exporter's textfile collector. The
// zero value does nothing. A failure prints a warning and does not affect the run.
type runMetrics struct {
	path   string
	lock   string        // "" if there is nothing to write
	last   chan struct{} // closed when the last update is written; nil before the first
	warned bool          // a warning was printed; belongs to the update in progress
}

// begin makes the run count. The caller has checked the names of the locks. begin returns
// an error for a file that the collector would not read.
func (m *runMetrics) begin(lock string) error {
	if m.path == "" {
		return nil
	}
	if err := CheckTextfile(m.path); err != nil {
		return cli.UsageError("--metrics %s: %w", m.path, err)
	}
	m.lock = lock
	return nil
}

// started records the start of the command. It does not wait until the file is written,
// because the command must be supervised from now on.
func (m *runMetrics) started(at time.Time) {
	m.update(func(s Textfile) {
		s.Put("zklock_run_running", m.lock, 1)
		s.Put("zklock_run_last_start_timestamp_seconds", m.lock, unixSeconds(at))
	})
}

// ended records the outcome of the run.
func (m *runMetrics) ended(st *statusLine, at time.Time) {
	if m.lock == "" {
		return
	}
	end := *st
	m.update(func(s Textfile) { end.count(s, m.lock, at) })
	select {
	case <-m.last:
	case <-time.After(metricsTime):
		cli.Warn("--metrics %s: the file was not written within %v", m.path, metricsTime)
	}
}

// update changes the file in a goroutine, after the previous update. The goroutine ends
// after that, or with the process.
func (m *runMetrics) update(change func(Textfile)) {
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
		err := UpdateTextfile(m.path, change)
		if err != nil && !m.warned {
			m.warned = true
			cli.Warn("--metrics %s: %v", m.path, err)
		}
	}()
}

// unixSeconds returns a time in the format of Prometheus.
func unixSeconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

// runOutcomes returns the outcomes of zklock_runs_total: those of the status line, plus
// "succeeded" for a command that exited with 0.
func runOutcomes() []string {
	return []string{"succeeded", "exited", "signalled", "lost", "max_hold", "done_before", "not_acquired", "interrupted", "not_found", "not_executable", "failed"}
}

// count adds a run that has ended to the metrics.
func (s *statusLine) count(to Textfile, lock string, at time.Time) {
	outcome := strings.ReplaceAll(s.Outcome, "-", "_")
	if s.Outcome == outcomeExited && s.Exit == 0 {
		outcome = "succeeded"
		to.Put("zklock_run_last_success_timestamp_seconds", lock, unixSeconds(at))
	}
	to.Count(lock, outcome, runOutcomes())
	to.Put("zklock_run_last_attempt_timestamp_seconds", lock, unixSeconds(at))
	to.Put("zklock_run_last_exit_code", lock, float64(s.Exit))
	if s.Started { // otherwise another run may be running
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
