//go:build unix

package serve

import (
	"errors"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// notifyTime limits the send of a message, so that a service manager that does not read
// cannot block the service.
const notifyTime = time.Second

// Notify sends a message about this service, such as Ready, to the service manager. It
// does nothing without NOTIFY_SOCKET. It may be called from any goroutine.
func Notify(word string) error {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return nil
	}
	if !strings.HasPrefix(path, "/") && !strings.HasPrefix(path, "@") {
		return errors.New("NOTIFY_SOCKET is neither a path nor an abstract name")
	}
	// Package net uses a leading @ for the zero byte of an abstract name.
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

// Watchdog returns the interval at which to send Alive, half of WatchdogSec of the unit, or
// 0 for never.
func Watchdog() time.Duration {
	us, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64)
	if pid := os.Getenv("WATCHDOG_PID"); err != nil || us <= 0 || us > int64(24*time.Hour/time.Microsecond) || pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return 0
	}
	return time.Duration(us) * time.Microsecond / 2
}
