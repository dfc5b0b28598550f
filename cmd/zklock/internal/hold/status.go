package hold

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/zklock/zklock/cmd/zklock/internal/cli"
	"github.com/zklock/zklock/cmd/zklock/internal/process"
	"github.com/zklock/zklock/internal/legible"
)

// Outcomes of a run in the status line.
const (
	outcomeExited        = "exited"         // the command exited with Code
	outcomeSignalled     = "signalled"      // Signal ended the command
	outcomeLost          = "lost"           // the lock was lost and the command ended
	outcomeMaxHold       = "max-hold"       // --max-hold ended the command
	outcomeDone          = "done-before"    // --once-per: the command did not run again
	outcomeNotAcquired   = "not-acquired"   // --try or --timeout
	outcomeInterrupted   = "interrupted"    // a signal ended the wait
	outcomeNotFound      = "not-found"      // the command was not found
	outcomeNotExecutable = "not-executable" // the command cannot be executed
	outcomeUsage         = "usage"
	outcomeFailed        = "failed" // zklock failed
)

// statusLine is the line that --status-fd gets for every run. The exit code alone cannot
// distinguish a command's own 124 from zklock's.
type statusLine struct {
	Outcome  string      `json:"outcome"`
	Exit     int         `json:"exit"` // of zklock
	Lock     string      `json:"lock"`
	Path     string      `json:"path"`
	Mode     string      `json:"mode,omitempty"` // exclusive, shared, permit
	Acquired bool        `json:"acquired"`
	Started  bool        `json:"started"`                // the command ran
	Code     *int        `json:"code,omitempty"`         // the command's exit code
	Signal   int         `json:"signal,omitempty"`       // the signal that ended the command
	Token    int64       `json:"token,omitempty,string"` // of the hold
	Waited   float64     `json:"waited_s,omitempty"`     // seconds until the grant
	Held     float64     `json:"held_s,omitempty"`       // seconds
	Locks    []lockState `json:"locks,omitempty"`        // all locks, including the first
	Servers  string      `json:"servers,omitempty"`
	Revoked  bool        `json:"revoked,omitempty"` // a client requested the release
	Released bool        `json:"released"`          // the servers confirmed the release
	Error    string      `json:"error,omitempty"`
}

// newStatusLine returns the status line of a run that has not acquired its locks. name is
// the first lock as the user gave it.
func newStatusLine(name string, spec *lockSpec) *statusLine {
	s := &statusLine{Lock: name, Mode: string(spec.mode()), Locks: spec.states(nil)}
	if len(spec.paths) > 0 {
		s.Path = spec.paths[0]
	}
	return s
}

// finish sets the exit code, the error, and the outcome from the error of the run. An
// outcome that is already set stays.
func (s *statusLine) finish(err error) {
	s.Exit = cli.ExitCode(err)
	if e, ok := errors.AsType[*cli.ExitError](err); err != nil && (!ok || e.Err != nil) {
		s.Error = err.Error()
	}
	if s.Outcome != "" {
		return
	}
	switch {
	case errors.Is(err, process.ErrNotFound):
		s.Outcome = outcomeNotFound
	case errors.Is(err, process.ErrNotExecutable):
		s.Outcome = outcomeNotExecutable
	case s.Exit == cli.ExitUsage:
		s.Outcome = outcomeUsage
	default:
		s.Outcome = outcomeFailed
	}
}

// seconds returns a duration in seconds, rounded to milliseconds.
func seconds(d time.Duration) float64 { return d.Round(time.Millisecond).Seconds() }

// statusFile returns the file of --status-fd, which the parent process opened, or nil if
// fd is negative.
func statusFile(fd int) (*os.File, error) {
	if fd < 0 {
		return nil, nil
	}
	// The Go runtime may have opened a descriptor with this number for itself.
	if process.Inherited(fd) {
		f := os.NewFile(uintptr(fd), "status")
		if _, err := f.Stat(); err == nil {
			return f, nil
		}
	}
	return nil, cli.UsageError("--status-fd %d: this descriptor is not open; write %d>FILE after the command", fd, fd)
}

// statusTime is how long the end of a run waits until the status line is written. A full
// pipe that no process reads must not delay the exit.
const statusTime = 5 * time.Second

// write writes the line. Its goroutine ends with the write, or with the process.
func (s *statusLine) write(w io.Writer) {
	line, err := json.Marshal(s)
	if err != nil { // impossible with these types
		cli.Warn("write the status line: %v", err)
		return
	}
	written := make(chan error, 1)
	go func() {
		_, err := fmt.Fprintf(w, "%s\n", legible.JSON(line))
		written <- err
	}()
	select {
	case err = <-written:
	case <-time.After(statusTime):
		err = fmt.Errorf("no process read it within %v", statusTime)
	}
	if err != nil {
		cli.Warn("write the status line: %v", err)
	}
}
