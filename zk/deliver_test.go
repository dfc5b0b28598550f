package zk

import (
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestDifferentSessionTimeoutIsLogged checks that one warning per session names both timeouts if
// the servers grant another session timeout than the requested one.
func TestDifferentSessionTimeoutIsLogged(t *testing.T) {
	for asked, want := range map[time.Duration]string{
		20 * time.Second:                 "", // the fake server grants it
		20*time.Second + time.Nanosecond: "",
		0:                                "",
		time.Minute:                      "asked=1m0s given=20s",
		10 * time.Millisecond:            "asked=10ms given=20s",
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFakeServer(t)
			first := true
			f.serve(func(c *fakeConn) {
				if c.acceptSession(7); first {
					first = false
					c.read()
					return // the connection is lost
				}
				c.serveRequests()
			})
			var log logLines
			c := f.client(&Options{SessionTimeout: asked, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			if err := c.Sync(t.Context(), "/"); err == nil {
				t.Fatal("the lost request succeeded")
			}
			if err := c.Sync(t.Context(), "/"); err != nil {
				t.Fatal(err)
			}
			if got := log.with("another session timeout"); (len(got) > 0) != (want != "") || len(got) > 1 {
				t.Errorf("requested %v: logged %q", asked, got)
			} else if want != "" && (!strings.Contains(got[0], want) || !strings.Contains(got[0], "level=WARN")) {
				t.Errorf("requested %v: logged %q, want %s", asked, got, want)
			}
			if got := log.with("state=connected"); len(got) != 2 {
				t.Errorf("connected: %q", got)
			}
		})
	}
}

// logLines is a log that several goroutines write to.
type logLines struct {
	mu  sync.Mutex
	all []string
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, string(p))
	return len(p), nil
}

// with returns the lines that contain text.
func (l *logLines) with(text string) (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.all {
		if strings.Contains(line, text) {
			found = append(found, line)
		}
	}
	return found
}
