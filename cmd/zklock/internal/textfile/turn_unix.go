//go:build unix

package textfile

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// turn locks the directory, which nothing but this package locks and nothing
// leaves behind. It looks again and again rather than wait in the kernel, which
// knows no deadline.
func turn(dir *os.File, deadline time.Time) error {
	for {
		err := unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, unix.EINTR):
		case !errors.Is(err, unix.EWOULDBLOCK):
			return nil // a file system without locks: the metrics are worth less than the run
		case time.Now().After(deadline):
			return ErrBusy
		default:
			time.Sleep(5 * time.Millisecond)
		}
	}
}
