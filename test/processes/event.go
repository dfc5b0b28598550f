package processes

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"github.com/zklock/zklock/test/history"
)

// Kind is what an Event tells.
type Kind string

// The kinds of event. Every attempt begins with Invoke. Without Acquired it ends
// with Cancelled or Failed, else with Released, Unconfirmed or Lost. A process
// ends with End, or with Killed, which is written by whoever killed it.
const (
	Invoke      Kind = "invoke"
	Acquired    Kind = "acquired"    // Acquire has returned a hold: Token, Session, Until
	Cancelled   Kind = "cancelled"   // Acquire failed because its context ended, as wanted
	Failed      Kind = "failed"      // Acquire failed for another reason: Err
	Looked      Kind = "looked"      // Err was nil, no earlier than At: Until
	Acted       Kind = "acted"       // the resource took the token
	Refused     Kind = "refused"     // the resource has seen a higher token
	Releasing   Kind = "releasing"   // Release is about to be called
	Released    Kind = "released"    // Release has returned nil
	Unconfirmed Kind = "unconfirmed" // Release says that it goes on in the background
	Lost        Kind = "lost"        // Err, or Release, says that the hold is lost
	End         Kind = "end"         // the client is closed: Goroutines that are left
	Killed      Kind = "killed"      // SIGKILL was sent, no earlier than At
)

// Event is one line of a history.
type Event struct {
	Kind    Kind   `json:"kind"`
	Proc    string `json:"proc"` // one life of a process
	Attempt int    `json:"attempt,omitempty"`
	// At is when it happened, on Now's clock. Of what asks the library, it was
	// read before the question; of what the library said by itself, after.
	At      int64  `json:"at"`
	Token   int64  `json:"token,omitempty"`
	Session int64  `json:"session,omitempty"`
	Until   int64  `json:"until,omitempty"` // the hold's deadline as it was at At
	Err     string `json:"err,omitempty"`
	// Goroutines is how many more there were at the end than at the start.
	Goroutines int `json:"goroutines,omitempty"`
}

// clockMonotonic is CLOCK_MONOTONIC of clock_gettime(2).
const clockMonotonic = 1

// Now is CLOCK_MONOTONIC in nanoseconds, which all processes of a machine share.
// Package time shows it only relative to the start of a process.
func Now() int64 {
	var ts syscall.Timespec
	// It fails for unknown clocks only.
	_, _, _ = syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&ts)), 0)
	return ts.Nano()
}

// History writes events to a file, each with one write, so that those that were
// written survive a SIGKILL. It may be used from any goroutine.
type History struct {
	proc string
	mu   sync.Mutex // orders writes
	file io.WriteCloser
	err  error
}

// Create makes the history of one life of a process.
func Create(path, proc string) (*History, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	return &History{proc: proc, file: f}, nil
}

// Add writes an event, of this process unless it names another.
func (h *History) Add(e Event) {
	if e.Proc == "" {
		e.Proc = h.proc
	}
	line, err := json.Marshal(e)
	if err == nil {
		h.mu.Lock()
		_, err = h.file.Write(append(line, '\n'))
		h.mu.Unlock()
	}
	if err != nil {
		h.mu.Lock()
		h.err = errors.Join(h.err, err)
		h.mu.Unlock()
	}
}

// Close closes the file, and says whether all that was added is in it.
func (h *History) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return errors.Join(h.err, h.file.Close())
}

// Read reads a history. With [history.ErrTorn] the events before the torn line
// are returned.
func Read(r io.Reader) ([]Event, error) {
	var events []Event
	err := history.EachLine(r, func(_ int, line []byte) error {
		var e Event
		dec := json.NewDecoder(bytes.NewReader(line))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&e); err != nil {
			return err
		}
		events = append(events, e)
		return nil
	})
	return events, err
}

// duration turns a difference of two times of Now into one for people.
func duration(ns int64) time.Duration { return time.Duration(ns) }
