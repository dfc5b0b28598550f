//go:build unix

package process

import (
	"os/signal"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// newLink returns a Link, and the front's end of its socket.
func newLink(t *testing.T) (l *Link, front int) {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(pair[0]) }) // also ends the goroutine of the Link
	l = AttachFront(pair[1])
	t.Cleanup(func() { signal.Reset(unix.SIGTTOU) })
	return l, pair[0]
}

func TestStoppedDoesNotBlockWhenFrontDoesNotRead(t *testing.T) {
	l, _ := newLink(t)
	sent := make(chan struct{})
	go func() { // ends with the test process at the latest
		defer close(sent)
		for range 2000 {
			l.Stopped(int(unix.SIGTSTP))
		}
	}()
	select {
	case <-sent:
	case <-time.After(patience):
		t.Fatal("Stopped blocks although the front does not read")
	}
}
