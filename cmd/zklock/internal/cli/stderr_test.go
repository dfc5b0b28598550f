package cli

import (
	"bufio"
	"fmt"
	"strings"
	"testing"

	"github.com/zklock/zklock/cmd/zklock/internal/clitest"
)

// TestDroppedLinesAreReported checks that the lines that standard error did not accept are
// counted, and that the number is printed later.
func TestDroppedLinesAreReported(t *testing.T) {
	r, restore := clitest.BlockStderr(t)
	defer restore()
	for i := range maxLines + 5 {
		fmt.Fprintf(Stderr, "line %d\n", i)
	}
	text := bufio.NewReader(r)
	if _, err := text.Discard(1); err != nil {
		t.Fatal(err)
	}
	last := ""
	for !strings.Contains(last, "not shown") {
		var err error
		if last, err = text.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	if want := "zklock: 5 lines are not shown, because standard error was not read\n"; last != want {
		t.Errorf("after the lines comes %q, want %q", last, want)
	}
}
