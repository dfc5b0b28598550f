package cli

import (
	"bytes"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/zklock/zklock/internal/survey"
)

// TestAsk: nothing but a yes is one, and where nobody can say it, --yes must.
func TestAsk(t *testing.T) {
	for answer, yes := range map[string]bool{"y\n": true, "yes\n": true, " YES \n": true, "Y": true,
		"\n": false, "": false, "n\n": false, "yesterday\n": false, "ja\n": false} {
		var out bytes.Buffer
		err := asker{in: strings.NewReader(answer), out: &out, terminal: true}.sure("Sure?")
		if (err == nil) != yes || err != nil && code(err) != exitNo {
			t.Errorf("%q: %v", answer, err)
		}
		if !strings.HasPrefix(out.String(), "Sure? [y/N] ") {
			t.Errorf("asked %q", out.String())
		}
	}
	if err := (asker{in: iotest.ErrReader(bytes.ErrTooLarge), out: &bytes.Buffer{}, yes: true}).sure("Sure?"); err != nil {
		t.Errorf("--yes was asked all the same: %v", err)
	}
	for _, tt := range []struct {
		terminal, yes bool
		want          int
	}{{false, false, exitUsage}, {true, false, 0}, {false, true, 0}} {
		if got := code(asker{terminal: tt.terminal, yes: tt.yes}.check()); got != tt.want {
			t.Errorf("%+v: exit code %d", tt, got)
		}
	}
}

// TestLining: columns grow with what comes, and never shrink.
func TestLining(t *testing.T) {
	var out bytes.Buffer
	c := lining{}
	for _, lines := range [][][]string{{{"A", "B"}, {"ü", "1"}}, {{"longer", "2"}}, {{"x", "3"}}} {
		for _, line := range lines {
			c.add(line)
		}
		if err := c.flush(&out); err != nil {
			t.Fatal(err)
		}
	}
	if want := "A  B\nü  1\nlonger  2\nx       3\n"; out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
	// In little room the columns move together, and then what may be cut is.
	for room, want := range map[int]string{
		0:  "a-long-name-of-a-lock  exclusive  a-host:4711\n",
		43: "a-long-name-of-a-lock exclusive a-host:4711\n",
		35: "a-long-name-~ exclusive a-host:4711\n",
		10: "a-long-~ exclusive a-host:~\n",
	} {
		out.Reset()
		narrow := lining{room: room, soft: []int{0, 2}, mark: "~"}
		narrow.add([]string{"a-long-name-of-a-lock", "exclusive", "a-host:4711"})
		if err := narrow.flush(&out); err != nil || out.String() != want {
			t.Errorf("in %d columns: %q, %v, want %q", room, out.String(), err, want)
		}
	}
	c.add([]string{"y", "4"})
	if err := c.flush(full{}); err == nil {
		t.Error("what could not be written is lost in silence")
	}
}

// TestWatcherPrints what changed, once each, and that a lock became free.
func TestWatcherPrints(t *testing.T) {
	lock := func(path string, version uint64) *survey.Lock {
		return &survey.Lock{Path: path, Kind: survey.Queue, Version: version}
	}
	for _, tt := range []struct {
		only string
		want string
	}{
		{"", "a b|a|b||"},
		{"/zklock/b", "b||b||"},
		{"/zklock/c", "c||||"},
	} {
		var out bytes.Buffer
		w := &watcher{out: &out, form: &output{form: outName}, only: tt.only, shown: func(l []*survey.Lock, _ time.Time) shown { return lockList(l) }, known: map[string]uint64{}}
		for _, locks := range [][]*survey.Lock{
			{lock("/zklock/a", 1), lock("/zklock/b", 1)}, // at first
			{lock("/zklock/a", 2), lock("/zklock/b", 1)}, // a changed
			{lock("/zklock/a", 2)},                       // b is free
			{lock("/zklock/a", 2)},                       // nothing
		} {
			if err := w.print(&survey.Snapshot{Locks: locks}); err != nil {
				t.Fatal(err)
			}
			out.WriteString("|")
		}
		got := strings.ReplaceAll(strings.ReplaceAll(out.String(), "\n|", "|"), "\n", " ")
		if got != tt.want {
			t.Errorf("of %q it prints %q, want %q", tt.only, got, tt.want)
		}
	}
}
