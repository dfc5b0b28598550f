//go:build !linux

package boottime

import "time"

// bootReading says that the system has no clock that is known to count through
// a suspend and to agree with package time otherwise.
func bootReading() (time.Duration, bool) {
	return 0, false
}
