package hold

import (
	"bytes"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/cmd/zklock/internal/cli"
)

// eventKind is the type of a line of zklock lock --stdio.
type eventKind string

// The types of lines. Each of the last three is the last line.
const (
	eventWaiting          eventKind = "waiting"
	eventHeld             eventKind = "held"
	eventExtended         eventKind = "extended"
	eventJeopardy         eventKind = "jeopardy"
	eventReleaseRequested eventKind = "release-requested"
	eventReleased         eventKind = "released"
	eventLost             eventKind = "lost"
	eventFailed           eventKind = "failed"
)

// Reasons of a release.
const (
	reasonRelease = "release" // the program wrote the line release
	reasonStdin   = "stdin"   // standard input ended
	reasonParent  = "parent"  // the parent process ended
)

// event is one line of zklock lock --stdio. The fields are a stable interface: see
// docs/guides/other-languages.md.
type event struct {
	Event    eventKind   `json:"event"`
	Path     string      `json:"path,omitempty"`
	Position int         `json:"position,omitempty"`
	Holder   string      `json:"holder,omitempty"`
	Token    int64       `json:"token,omitempty,string"`
	Mode     zklock.Mode `json:"mode,omitempty"`
	Session  string      `json:"session,omitempty"`
	// Until when no other client can acquire the lock, if no client deletes its znode.
	SafeMS    *int64      `json:"safe_ms,omitempty"`    // from when the line was written
	SafeUntil string      `json:"safe_until,omitempty"` // by the clock of this machine
	Locks     []lockState `json:"locks,omitempty"`
	Servers   string      `json:"servers,omitempty"`
	By        string      `json:"by,omitempty"`
	Signal    string      `json:"signal,omitempty"`
	Reason    string      `json:"reason,omitempty"`
	Error     string      `json:"error,omitempty"`
	Exit      *int        `json:"exit,omitempty"`
}

// safeUntilFormat is RFC 3339 in UTC with a fixed width, so that the texts sort by time.
const safeUntilFormat = "2006-01-02T15:04:05.000Z"

// setSafe sets the safe time of a hold that is safe for d from now on, rounded down.
func (e *event) setSafe(d time.Duration) {
	d = max(d, 0)
	ms := d.Milliseconds()
	e.SafeMS, e.SafeUntil = &ms, time.Now().UTC().Add(d).Format(safeUntilFormat)
}

// whileHeld reports whether lines of this type have the safe time.
func (k eventKind) whileHeld() bool {
	switch k {
	case eventHeld, eventExtended, eventJeopardy, eventReleaseRequested:
		return true
	}
	return false
}

// encode returns the event as one line.
func (e event) encode() ([]byte, error) {
	var line bytes.Buffer
	out := cli.Output{Form: cli.OutJSON}
	err := out.Write(&line, cli.Result{Data: func() []any { return []any{e} }})
	return line.Bytes(), err
}
