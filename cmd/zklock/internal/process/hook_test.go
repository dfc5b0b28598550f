//go:build unix

package process

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// waitForFile returns the text of a file once it ends with a line break.
func waitForFile(t *testing.T, name string) string {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if text, err := os.ReadFile(name); err == nil && strings.HasSuffix(string(text), "\n") {
			return string(text)
		}
	}
	t.Fatalf("%s has no line", name)
	return ""
}

func TestHookRunsOnceWithReason(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	h, err := NewHook(os.Args[0], `echo "$ZKLOCK_LOST_REASON $OTHER" >>"$OUT"`, []string{"OUT=" + out, "OTHER=kept"}, HookTime)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := h.Start("no\nanswer"); err != nil {
			t.Error(err)
		}
	}
	h.Close()
	if got := waitForFile(t, out); got != "no answer kept\n" {
		t.Errorf("the hook wrote %q", got)
	}
}

// TestHookRunsWithUnsafeReason: a reason can quote text from a server. With a NUL, the hook would
// not start, and other control characters must not reach a terminal or a log.
func TestHookRunsWithUnsafeReason(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	h, err := NewHook(os.Args[0], `printf '%s\n' "$ZKLOCK_LOST_REASON" >>"$OUT"`, []string{"PATH=" + os.Getenv("PATH"), "OUT=" + out}, HookTime)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Start("lost \x00\x1b[2J\r\u202e\xff" + strings.Repeat("x", 1<<20)); err != nil {
		t.Error(err)
	}
	h.Close()
	if got := waitForFile(t, out); !strings.HasPrefix(got, `lost \x00\x1b[2J\r\u202e\xffxx`) || len(got) > 5000 {
		t.Errorf("the hook wrote %d bytes: %.100q", len(got), got)
	}
}

func TestHookWithoutStartDoesNothing(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	h, err := NewHook(os.Args[0], `echo >"$OUT"`, []string{"PATH=" + os.Getenv("PATH"), "OUT=" + out}, HookTime)
	if err != nil {
		t.Fatal(err)
	}
	h.Close()
	if _, err := os.Stat(out); err == nil {
		t.Error("the hook ran")
	}
	var none *Hook
	if err := none.Start("x"); err != nil {
		t.Error(err)
	}
	none.Close()
}

// TestHookGroupIsKilledAfterLimit checks that a child of the hook that ignores TERM is also killed.
func TestHookGroupIsKilledAfterLimit(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	h, err := NewHook(os.Args[0], `trap "" TERM; sleep 1000 & echo $! >"$OUT"; wait`,
		[]string{"PATH=" + os.Getenv("PATH"), "OUT=" + out}, 5*time.Second) // in which the hook writes the file
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Start("lost"); err != nil {
		t.Fatal(err)
	}
	h.Close()
	pid, err := strconv.Atoi(strings.TrimSpace(waitForFile(t, out)))
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); syscall.Kill(pid, 0) == nil; time.Sleep(time.Millisecond) {
		if _, ok := FindProcess(pid); ListsProcesses() && !ok {
			break // a zombie
		}
		if time.Now().After(deadline) {
			t.Fatal("the child of the hook still runs")
		}
	}
}
