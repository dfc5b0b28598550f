package cli

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// TestDroppedLinesAreReported: standard error takes no more for a while. The lines that did
// not fit are counted once it does.
func TestDroppedLinesAreReported(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.SetWriteDeadline(time.Now().Add(time.Second)); err != nil {
		t.Skipf("no deadlines for pipes there: %v", err)
	}
	for err == nil {
		_, err = w.Write(make([]byte, 1<<10))
	}
	_ = w.SetWriteDeadline(time.Time{})
	old := os.Stderr
	os.Stderr = w
	defer func() { os.Stderr = old }()
	for i := range maxLines + 5 {
		fmt.Fprintf(Stderr, "line %d\n", i)
	}
	text := bufio.NewReader(r)
	if _, err := text.Discard(1); err != nil {
		t.Fatal(err)
	}
	last := ""
	for !strings.Contains(last, "not shown") {
		if last, err = text.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	if want := "zklock: 5 lines are not shown, because standard error was not read\n"; last != want {
		t.Errorf("after the lines comes %q, want %q", last, want)
	}
	_ = r.Close()
	_ = w.Close()
}
