package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/zklock/zklock/cmd/zklock/internal/inherit"
)

// Outcomes of a run, as the status line says them.
const (
	outcomeExited        = "exited"         // the command, with Code
	outcomeSignalled     = "signalled"      // the command, by Signal
	outcomeLost          = "lost"           // the lock; the command was ended
	outcomeNotAcquired   = "not-acquired"   // -n or -w
	outcomeInterrupted   = "interrupted"    // a signal while waiting
	outcomeNotFound      = "not-found"      // the command
	outcomeNotExecutable = "not-executable" // the command
	outcomeUsage         = "usage"
	outcomeFailed        = "failed" // zklock itself
)

// statusLine is what --status-fd gets: one line, whatever happened. The exit
// code alone cannot tell a command's own 124 from zklock's.
type statusLine struct {
	Outcome  string  `json:"outcome"`
	Exit     int     `json:"exit"` // of zklock
	Lock     string  `json:"lock"`
	Path     string  `json:"path"`
	Mode     string  `json:"mode,omitempty"` // exclusive, shared, permit
	Acquired bool    `json:"acquired"`
	Started  bool    `json:"started"`            // the command ran
	Code     *int    `json:"code,omitempty"`     // the command's own
	Signal   int     `json:"signal,omitempty"`   // that ended the command
	Token    int64   `json:"token,omitempty"`    // of the hold
	Waited   float64 `json:"waited_s,omitempty"` // seconds until it was acquired
	Held     float64 `json:"held_s,omitempty"`   // seconds
	Locks    []held  `json:"locks,omitempty"`    // all of them, the first included
	Servers  string  `json:"servers,omitempty"`  // that were asked
	Revoked  bool    `json:"revoked,omitempty"`  // somebody asked for the lock back
	Released bool    `json:"released"`           // confirmed by the servers
	Error    string  `json:"error,omitempty"`
}

// seconds are those of a duration, to the millisecond.
func seconds(d time.Duration) float64 { return d.Round(time.Millisecond).Seconds() }

// statusFile takes the descriptor for the status line from whoever started us.
// It is nil if fd is negative.
func statusFile(fd int) (*os.File, error) {
	if fd < 0 {
		return nil, nil
	}
	// What the runtime has opened for itself may have that number as well.
	if inherit.Inherited(fd) {
		f := os.NewFile(uintptr(fd), "status")
		if _, err := f.Stat(); err == nil {
			return f, nil
		}
	}
	return nil, usage("--status-fd %d: no such descriptor is open; write %d>FILE after the command", fd, fd)
}

// keep keeps f from the command, which could hold it open. A front must not do
// so: its keeper writes the line.
func keep(f *os.File, fd int) {
	if f != nil && fd > 2 {
		inherit.Mark(fd)
	}
}

// write writes the line; f may be nil.
func (s *statusLine) write(f *os.File) {
	if f == nil {
		return
	}
	line, err := json.Marshal(s)
	if err == nil {
		_, err = fmt.Fprintf(f, "%s\n", line)
	}
	if err != nil {
		warn("the status line cannot be written: %v", err)
	}
}
