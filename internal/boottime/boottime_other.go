//go:build !linux

package boottime

import "time"

// bootReading returns false: this system has no clock that is known to run during a
// suspend and otherwise to agree with package time.
func bootReading() (time.Duration, bool) {
	return 0, false
}
