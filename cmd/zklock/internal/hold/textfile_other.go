//go:build !unix

package hold

import (
	"os"
	"time"
)

// lockDirectory does nothing, because directories cannot be locked here.
func lockDirectory(*os.File, time.Time) error { return nil }
