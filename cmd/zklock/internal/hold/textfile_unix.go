//go:build unix

package hold

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// lockDirectory locks the directory, so that no lock file remains. Only this package locks
// it. It polls, because the kernel's blocking lock has no deadline.
func lockDirectory(dir *os.File, deadline time.Time) error {
	for {
		err := unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, unix.EINTR):
		case !errors.Is(err, unix.EWOULDBLOCK):
			return nil // a file system without locks: lost metrics are better than a failed run
		case time.Now().After(deadline):
			return ErrTextfileBusy
		default:
			time.Sleep(5 * time.Millisecond)
		}
	}
}
