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

func TestAdmitWaitsForFront(t *testing.T) {
	for _, answers := range []bool{true, false} {
		l, front := newLink(t)
		ended, got := make(chan struct{}), make(chan error, 1)
		go func() { got <- l.Admit(77, ended) }() // ends with ended at the latest
		line := make([]byte, 64)
		n, err := unix.Read(front, line)
		if m, ok := decode(string(line[:max(n, 0)])); err != nil || !ok || m.group != 77 {
			t.Errorf("the front got %q, %v", line[:max(n, 0)], err)
		}
		var want error
		if answers {
			if _, err := unix.Write(front, []byte{'\n'}); err != nil {
				t.Error(err)
			}
		} else {
			close(ended)
			want = ErrEnded
		}
		if err := <-got; err != want {
			t.Errorf("the front answers: %v; Admit returned %v, want %v", answers, err, want)
		}
	}
}
