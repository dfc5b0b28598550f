package locks

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/cmd/zklock/internal/cli"
	"github.com/zklock/zklock/inspect"
)

// timedWriter records the lines that were written, with their times.
type timedWriter struct {
	begun time.Time
	lines []string
	fails error
}

func (w *timedWriter) Write(b []byte) (int, error) {
	for line := range strings.Lines(string(b)) {
		w.lines = append(w.lines, time.Since(w.begun).String()+" "+strings.Fields(line)[0])
	}
	return len(b), w.fails
}

// TestSlowListingIsPrintedInParts checks that a slow listing prints the locks that it has found
// so far, with one header. A fast listing is printed once, in order.
func TestSlowListingIsPrintedInParts(t *testing.T) {
	for name, c := range map[string]struct {
		form  string
		every time.Duration // between two locks
		want  []string
	}{
		"short":       {cli.OutTable, 10 * time.Millisecond, []string{"40ms LOCK", "40ms /a", "40ms /b", "40ms /c"}},
		"long":        {cli.OutTable, 300 * time.Millisecond, []string{"500ms LOCK", "500ms /c", "1s /a", "1s /b"}},
		"long, names": {cli.OutName, 300 * time.Millisecond, []string{"500ms /c", "1s /a", "1s /b"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &timedWriter{begun: time.Now()}
				l := &listing{out: &cli.Output{Form: c.form}, to: w}
				many := errors.New("too many")
				err := l.run(func(found func(*inspect.Lock)) error {
					for _, path := range []string{"/c", "/b", "/a"} {
						time.Sleep(c.every)
						found(&inspect.Lock{Path: path})
					}
					time.Sleep(c.every)
					return many
				}, func() {})
				if !errors.Is(err, many) || !slices.Equal(w.lines, c.want) {
					t.Errorf("%v: %q, want %q", err, w.lines, c.want)
				}
			})
		})
	}
}

// TestListingEndsIfOutputFails checks that a listing ends if its output is closed.
func TestListingEndsIfOutputFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := errors.New("broken pipe")
		stopped := make(chan struct{})
		l := &listing{out: &cli.Output{Form: cli.OutName}, to: &timedWriter{fails: gone}}
		err := l.run(func(found func(*inspect.Lock)) error {
			found(&inspect.Lock{Path: "/a"})
			<-stopped
			return nil
		}, func() { close(stopped) })
		if !errors.Is(err, gone) {
			t.Errorf("%v, want %v", err, gone)
		}
	})
}
