package zklock_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// TestErrorsOfBadNames: an error says what is wrong with a name, in one line that no
// terminal obeys, however long the name.
func TestErrorsOfBadNames(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c, op := dial(t, srv), srv.Dial(t)
		for name, want := range map[string]string{
			"": "it is empty", "a//b": "two slashes in a row", "a/../b": `may not be ".."`, "zookeeper/a": "belongs to the servers",
			"nul\x00": "U+0000 at byte 3", "\x1b]0;title\a": "U+001B at byte 0", "a\nlevel=INFO msg=fine": "U+000A at byte 1", "\xff": "not UTF-8",
			strings.Repeat("x", 1<<20): "more than 512", strings.Repeat("\n", 1<<20): "more than 512", strings.Repeat("x/", 20) + "x": "levels are more than",
		} {
			_, err := c.Mutex(name).Acquire(t.Context())
			if wants(t, want, err, zklock.ErrInvalidName); !strings.Contains(err.Error(), want) {
				t.Errorf("%.20q: %.200q, want %q", name, err, want)
			}
			inOneLine(t, err)
			if _, _, err = op.Get(t.Context(), "/a\n"+name); !errors.Is(err, zk.ErrInvalidPath) {
				t.Errorf("%.20q: %.200v", name, err)
			}
			inOneLine(t, err)
		}
	})
}

// inOneLine fails unless an error is fit for a terminal and a log.
func inOneLine(t *testing.T, err error) {
	t.Helper()
	text := err.Error()
	if len(text) > 3000 || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\ufffd' }) {
		t.Errorf("%d bytes: %.200q", len(text), text)
	}
}
