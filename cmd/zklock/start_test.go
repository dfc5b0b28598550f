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

// Bounds of the additional time of zklock.
const (
	helpBound = 20 * time.Millisecond
	runBound  = 30 * time.Millisecond
)

// TestStart measures the time of `zklock help`, and of `zklock run` with a running server until
// the command starts, compared with a reference command.
func TestStart(t *testing.T) {
	if testing.Short() {
		t.Skip("measures times")
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
	// date prints the time at which it runs. Its own start counts in both runs.
	begun := func(args ...string) cost {
		before := time.Now()
		out, used := run(append(args, "date", "+%s%N")...)
		ns, err := strconv.ParseInt(strings.TrimSpace(out), 10, 64)
		if err != nil {
			t.Skipf("date prints no nanoseconds: %v", err)
		}
		return cost{time.Unix(0, ns).Sub(before), used}
	}
	whole := func(args ...string) cost {
		before := time.Now()
		_, used := run(args...)
		return cost{time.Since(before), used}
	}
	checkBound(t, "help", helpBound, func() cost { return whole("true") }, func() cost { return whole(bin, "help") })
	checkBound(t, "run", runBound, func() cost { return begun() }, func() cost { return begun(bin, "run", "start", "--") })
}

// checkBound fails if the command takes longer than the reference command by more than the bound.
func checkBound(t *testing.T, what string, bound time.Duration, bare, with func() cost) {
	t.Helper()
	j := judge{bound: bound}
	for j.open() {
		var r round
		left := hasSpareTime(func() {
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
