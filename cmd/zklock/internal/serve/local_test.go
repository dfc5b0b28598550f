package serve

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/zklock/zklock/cmd/zklock/internal/local"
)

// TestStateIsLegible checks that the names of directories have no effect on a terminal.
func TestStateIsLegible(t *testing.T) {
	for _, v := range []localView{{Directory: "/\x1b]0;x\a"}, runningView(local.Status{Dir: "/\x1b", Socket: "/\x1b/s"})} {
		var text bytes.Buffer
		if err := v.print(&text); err != nil || bytes.ContainsAny(text.Bytes(), "\x1b\a") {
			t.Errorf("%v, %q", err, text.String())
		}
	}
}

// TestRunningView checks each form of a server that does not report its number of sessions.
func TestRunningView(t *testing.T) {
	for _, row := range []struct{ sessions, text, json string }{
		{"3", "directory: /d\nrunning:   yes, process 7\nsocket:    /d/sock\nsessions:  3\n", `{"directory":"/d","running":true,"pid":7,"socket":"/d/sock","sessions":3}`},
		{"?", "directory: /d\nrunning:   yes, process 7\nsocket:    /d/sock\nsessions:  not told\n", `{"directory":"/d","running":true,"pid":7,"socket":"/d/sock"}`},
	} {
		v := runningView(local.Status{Dir: "/d", PID: 7, Socket: "/d/sock", Sessions: row.sessions})
		var text bytes.Buffer
		if err := v.print(&text); err != nil || !bytes.HasPrefix(text.Bytes(), []byte(row.text)) {
			t.Errorf("%q: %v, %q", row.sessions, err, text.String())
		}
		if got, err := json.Marshal(v); err != nil || string(got) != row.json {
			t.Errorf("%q: %v, %s", row.sessions, err, got)
		}
	}
}
