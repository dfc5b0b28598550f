//go:build unix && !linux

package watchdog

import (
	"time"

	"github.com/zklock/zklock/cmd/zklock/internal/boot"
)

// alarm waits in pieces of a second, since a suspend would stretch longer ones.
type alarm struct{}

func newAlarm() alarm { return alarm{} }

// poll waits for input or until the moment, 0 for none.
func (alarm) poll(until time.Duration) {
	d := time.Second
	if until != 0 {
		d = max(until-boot.Now(), 0)
	}
	pollFor(-1, d)
}
