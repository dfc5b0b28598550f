package cli

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"
)

// TestProgressAppearsWithinSecond: a short wait shows nothing. A longer one shows a line,
// which makes room for output and disappears at the end.
func TestProgressAppearsWithinSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		foreground := true
		p := startProgress(&out, func() bool { return foreground }, func() string { return "reading demo" })
		shows := func(after time.Duration, want string) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			if got := out.String(); got != want {
				t.Errorf("%q, want %q", got, want)
			}
			out.Reset()
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
		foreground = false
		shows(time.Second, "")
		p.Stop()
		p.Stop()
		shows(time.Second, EraseLine)
		p = nil
		p.Erase()
		p.Stop()
	})
}
