package locks

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock/cmd/zklock/internal/cli"
	"github.com/zklock/zklock/inspect"
)

// TestWatcherPrints what changed, once each, and that a lock became free.
func TestWatcherPrints(t *testing.T) {
	lock := func(path string, version uint64) *inspect.Lock {
		return &inspect.Lock{Path: path, Kind: inspect.KindQueue, Version: version}
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
		w := &watcher{out: &out, form: &cli.Output{Form: cli.OutName}, only: tt.only, result: func(l []*inspect.Lock, _ time.Time) cli.Result { return lockList(l) }, known: map[string]uint64{}}
		for _, locks := range [][]*inspect.Lock{
			{lock("/zklock/a", 1), lock("/zklock/b", 1)}, // at first
			{lock("/zklock/a", 2), lock("/zklock/b", 1)}, // a changed
			{lock("/zklock/a", 2)},                       // b is free
			{lock("/zklock/a", 2)},                       // nothing
		} {
			if err := w.print(&inspect.Snapshot{Locks: locks}); err != nil {
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
