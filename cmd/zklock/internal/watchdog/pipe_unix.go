//go:build unix && !linux

package watchdog

import "os"

// shorten leaves a pipe as it is.
func shorten(*os.File) {}
