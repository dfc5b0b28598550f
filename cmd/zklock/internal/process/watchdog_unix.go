//go:build unix && !linux

package process

import (
	"os"
	"time"
)

// alarm waits in steps.
type alarm struct{}

func newAlarm() alarm { return alarm{} }

// poll waits for input or until a time, 0 for none.
func (alarm) poll(until time.Duration) { pollUntil(until) }

// RunningProgram returns exe.
func RunningProgram(exe string) string { return exe }

// renameProcess does nothing here: a process always has the name of its program.
func renameProcess() {}

// shrinkPipe does nothing here.
func shrinkPipe(*os.File) {}

// raisePriority does nothing here.
func raisePriority() {}
