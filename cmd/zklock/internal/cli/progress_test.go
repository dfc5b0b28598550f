package cli

import (
	"bytes"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestProgressAppearsWithinSecond checks that a short wait prints nothing. A longer one prints a
// line, which is removed for other output and at the end.
func TestProgressAppearsWithinSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out screen
		var foreground atomic.Bool
		foreground.Store(true)
		p := startProgress(&out, foreground.Load, func() string { return "reading demo" })
		shows := func(after time.Duration, want string) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			if got := out.take(); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		}
		const line = EraseLine + "zklock: reading demo"
		shows(progressAfter-1, "")
		shows(1, line)
		shows(time.Second, line)
		p.Erase()
		shows(0, EraseLine)
		p.Erase()
		shows(0, "")
		shows(time.Second, line)
		foreground.Store(false)
		shows(time.Second, "")
		p.Stop()
		p.Stop()
		shows(time.Second, EraseLine)
		p = nil
		p.Erase()
		p.Stop()
	})
}

// screen is a writer for a goroutine. The test reads what it has written.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

// take returns what was written since the last call.
func (s *screen) take() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.text.Reset()
	return s.text.String()
}
