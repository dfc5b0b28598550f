//go:build unix

package systemd

import (
	"errors"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// notifyTime bounds the hand-over of a word: whoever does not take it must not
// hold the service up.
const notifyTime = time.Second

// Notify tells whoever started this service a word about it, such as Ready. It
// does nothing where nobody asked, by NOTIFY_SOCKET. It may be called from any
// goroutine.
func Notify(word string) error {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return nil
	}
	if !strings.HasPrefix(path, "/") && !strings.HasPrefix(path, "@") {
		return errors.New("NOTIFY_SOCKET is neither a path nor an abstract name")
	}
	// Package net takes a leading @ for the zero byte of an abstract name.
	conn, err := net.DialTimeout("unixgram", path, notifyTime)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetWriteDeadline(time.Now().Add(notifyTime)); err != nil {
		return err
	}
	_, err = conn.Write([]byte(word))
	return err
}

// Watchdog is how often Alive must be told, 0 for never: half of what
// WatchdogSec of the unit says.
func Watchdog() time.Duration {
	us, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64)
	if pid := os.Getenv("WATCHDOG_PID"); err != nil || us <= 0 || us > int64(24*time.Hour/time.Microsecond) || pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return 0
	}
	return time.Duration(us) * time.Microsecond / 2
}
