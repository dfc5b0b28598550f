//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Bounds of what people wait for, beyond what the machine takes for any program.
const (
	helpBound = 20 * time.Millisecond
	runBound  = 30 * time.Millisecond
)

// TestStart measures how long people wait for the command itself: for its help, and
// with a running server from `zklock run` to the start of what it runs. Each is
// interleaved with the bare command, which tells what the machine takes.
func TestStart(t *testing.T) {
	if testing.Short() {
		t.Skip("it measures")
	}
	bin := filepath.Join(t.TempDir(), "zklock")
	if out, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	home := filepath.Join(t.TempDir(), "home")
	defer stopServer(home)
	env := append(os.Environ(), "ZKLOCK_HOME="+home, "ZKLOCK_IDLE=1m", "ZKLOCK_SERVERS=")
	run := func(args ...string) (out string, used time.Duration) {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Env = env
		text, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		return string(text), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	run(bin, "run", "warm", "--", "true") // starts the server
	// date tells when it ran; what it takes to start is in both.
	begun := func(args ...string) taking {
		before := time.Now()
		out, used := run(append(args, "date", "+%s%N")...)
		ns, err := strconv.ParseInt(strings.TrimSpace(out), 10, 64)
		if err != nil {
			t.Skipf("date does not tell nanoseconds here: %v", err)
		}
		return taking{time.Unix(0, ns).Sub(before), used}
	}
	whole := func(args ...string) taking {
		before := time.Now()
		_, used := run(args...)
		return taking{time.Since(before), used}
	}
	bounded(t, "help", helpBound, func() taking { return whole("true") }, func() taking { return whole(bin, "help") })
	bounded(t, "run", runBound, func() taking { return begun() }, func() taking { return begun(bin, "run", "start", "--") })
}

// bounded fails if the command takes more than the bound beyond the bare one.
func bounded(t *testing.T, what string, bound time.Duration, bare, with func() taking) {
	t.Helper()
	j := judge{bound: bound}
	for j.open() {
		var r round
		left := spare(func() {
			for range samples {
				r = append(r, pair{bare(), with()})
			}
		})
		j.add(r, left)
		t.Logf("%s: %v more than the bare command's %v, of %v; the processors had time left: %v", what,
			r.more().Round(100*time.Microsecond), r.bare().Round(100*time.Microsecond), bound, left)
	}
	t.Logf("%s: %s", what, j.why)
	if !j.good {
		t.Errorf("%s takes more than %v beyond the bare command: %s", what, bound, j.why)
	}
}
