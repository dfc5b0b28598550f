package peer

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestParseHistogram(t *testing.T) {
	text := " num     #instances         #bytes  class name (module)\n" +
		"-------\n   1:         12345        1234567  [B (java.base@17)\nTotal        200000       12345678\n"
	if n, err := parseHistogram(text); err != nil || n != 12345678 {
		t.Errorf("got %d, %v", n, err)
	}
	for _, bad := range []string{"", "Total 1\n", "Total 1 many\n"} {
		if _, err := parseHistogram(bad); err == nil {
			t.Errorf("%q was parsed", bad)
		}
	}
}

func TestConfig(t *testing.T) {
	text := config("/var/x", 1234)
	for _, want := range []string{"dataDir=/var/x\n", "clientPort=1234\n", "maxClientCnxns=0\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %q", want, text)
		}
	}
	// Both servers must sync because of their defaults.
	if strings.Contains(text, "forceSync") {
		t.Error("the sync setting is not the default")
	}
}

func TestStartFailsIfProcessEnds(t *testing.T) {
	kind := &Kind{Name: "broken", command: func(string) *exec.Cmd { return exec.Command("false") }}
	s, err := New(kind, filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	s.Kill() // a server that never ran
	if _, err := s.Start(); !errors.Is(err, ErrStart) {
		t.Errorf("start: %v, want ErrStart", err)
	}
}

func TestLiveIsUnknownWithoutHeap(t *testing.T) {
	s, err := New(&Kind{Name: "x", command: func(string) *exec.Cmd { return exec.Command("sleep", "1000") }}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if _, ok, err := s.Live(context.Background()); ok || err != nil {
		t.Errorf("live memory of a process without a heap: %t, %v", ok, err)
	}
}
