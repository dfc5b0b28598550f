//go:build !unix

package textfile

import (
	"os"
	"time"
)

// turn does nothing: there are no locks of directories.
func turn(*os.File, time.Time) error { return nil }
