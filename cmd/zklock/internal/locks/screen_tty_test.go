//go:build unix

package locks

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
)

// terminal opens a pseudo-terminal whose output is read to its end.
func terminal(t *testing.T) (master, slave *os.File, text func() string) {
	t.Helper()
	master, slave, err := pty.Open()
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	if err := pty.Setsize(master, &pty.Winsize{Rows: 5, Cols: 20}); err != nil {
		t.Fatal(err)
	}
	got := make(chan string)
	// Ends when the terminal is closed.
	go func() {
		var b strings.Builder
		buf := make([]byte, 4096)
		for {
			n, err := master.Read(buf)
			b.Write(buf[:n])
			if err != nil {
				got <- b.String()
				return
			}
		}
	}()
	t.Cleanup(func() { _ = master.Close() })
	return master, slave, func() string {
		_ = slave.Close()
		select {
		case s := <-got:
			return s
		case <-time.After(time.Minute):
			t.Fatal("the terminal never ended")
			return ""
		}
	}
}

func TestScreen(t *testing.T) {
	master, slave, text := terminal(t)
	s, err := Open(slave, slave, false)
	if err != nil {
		t.Fatal(err)
	}
	if w, h := s.Size(); w != 20 || h != 5 {
		t.Errorf("%d x %d", w, h)
	}
	lines := []Line{Plain(strings.Repeat("x", 30), 0), Plain("two", Bold), nil, nil, nil, Plain("too many", 0)}
	for range 2 { // the second update sends nothing
		if err := s.Draw(lines); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := master.WriteString("q\x1b[A"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []Key{'q', Up} {
		select {
		case k := <-s.Keys():
			if k != want {
				t.Errorf("key %d, want %d", k, want)
			}
		case <-time.After(time.Minute):
			t.Fatal("a key never came")
		}
	}
	if err := pty.Setsize(master, &pty.Winsize{Rows: 2, Cols: 10}); err != nil {
		t.Fatal(err)
	}
	if err := s.Draw(lines); err != nil {
		t.Fatal(err)
	}
	s.Redraw()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// A line ends the read of keys, because a terminal that is being read cannot be closed. A
	// restored terminal may echo the line.
	if _, err := master.WriteString("x\n"); err != nil {
		t.Fatal(err)
	}
	want := enter + "\x1b[2J\x1b[1;1H\x1b[2K" + strings.Repeat("x", 20) + "\x1b[2;1H\x1b[2K\x1b[1mtwo\x1b[0m" +
		"\x1b[2J\x1b[1;1H\x1b[2K" + strings.Repeat("x", 10) + "\x1b[2;1H\x1b[2K\x1b[1mtwo\x1b[0m" + leave
	if got := text(); !strings.HasPrefix(got, want) || !strings.HasPrefix("x\r\n", got[len(want):]) {
		t.Errorf("sent %q\nwant %q", got, want)
	}
}
