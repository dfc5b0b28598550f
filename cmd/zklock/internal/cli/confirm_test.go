package cli

import (
	"bytes"
	"strings"
	"testing"
	"testing/iotest"
)

// TestConfirm checks that only a yes confirms, and that --yes is required without a terminal.
func TestConfirm(t *testing.T) {
	for answer, yes := range map[string]bool{"y\n": true, "yes\n": true, " YES \n": true, "Y": true,
		"\n": false, "": false, "n\n": false, "yesterday\n": false, "ja\n": false} {
		var out bytes.Buffer
		err := Confirmer{in: strings.NewReader(answer), out: &out, terminal: true}.Confirm("Sure?")
		if (err == nil) != yes || err != nil && ExitCode(err) != ExitNo {
			t.Errorf("%q: %v", answer, err)
		}
		if !strings.HasPrefix(out.String(), "Sure? [y/N] ") {
			t.Errorf("asked %q", out.String())
		}
	}
	if err := (Confirmer{in: iotest.ErrReader(bytes.ErrTooLarge), out: &bytes.Buffer{}, yes: true}).Confirm("Sure?"); err != nil {
		t.Errorf("with --yes, Confirm read an answer: %v", err)
	}
	for _, tt := range []struct {
		terminal, yes bool
		want          int
	}{{false, false, ExitUsage}, {true, false, 0}, {false, true, 0}} {
		if got := ExitCode(Confirmer{terminal: tt.terminal, yes: tt.yes}.Check()); got != tt.want {
			t.Errorf("%+v: exit code %d", tt, got)
		}
	}
}

// TestTableColumnsOnlyGrow checks the widths of columns as lines are added, and in little room.
func TestTableColumnsOnlyGrow(t *testing.T) {
	var out bytes.Buffer
	c := Table{}
	for _, lines := range [][][]string{{{"A", "B"}, {"ü", "1"}}, {{"longer", "2"}}, {{"x", "3"}}} {
		for _, line := range lines {
			c.Add(line)
		}
		if err := c.Flush(&out); err != nil {
			t.Fatal(err)
		}
	}
	if want := "A  B\nü  1\nlonger  2\nx       3\n"; out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
	// In little room, columns that may be cut are cut. The gaps stay, because a cell that another
	// client wrote can contain single spaces.
	for room, want := range map[int]string{
		0:  "a-long-name-of-a-lock  exclusive  a-host:4711\n",
		45: "a-long-name-of-a-lock  exclusive  a-host:4711\n",
		43: "a-long-name-of-a-l~  exclusive  a-host:4711\n",
		35: "a-long-nam~  exclusive  a-host:4711\n",
		10: "a-long-~  exclusive  a-host:~\n",
	} {
		out.Reset()
		narrow := Table{room: room, soft: []int{0, 2}, mark: "~"}
		narrow.Add([]string{"a-long-name-of-a-lock", "exclusive", "a-host:4711"})
		if err := narrow.Flush(&out); err != nil || out.String() != want {
			t.Errorf("in %d columns: %q, %v, want %q", room, out.String(), err, want)
		}
	}
	c.Add([]string{"y", "4"})
	if err := c.Flush(failingWriter{}); err == nil {
		t.Error("what could not be written is lost in silence")
	}
}

// failingWriter is a writer that fails.
type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, bytes.ErrTooLarge }
