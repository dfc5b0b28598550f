//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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

// attempts is how often a measurement is made before its bound counts as broken:
// where other programs have the processors, a median is theirs.
const attempts = 6

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
	run := func(args ...string) string {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Env = env
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		return string(out)
	}
	run(bin, "run", "warm", "--", "true") // starts the server
	// date tells when it ran; what it takes to start is in both.
	begun := func(args ...string) time.Duration {
		before := time.Now()
		ns, err := strconv.ParseInt(strings.TrimSpace(run(append(args, "date", "+%s%N")...)), 10, 64)
		if err != nil {
			t.Skipf("date does not tell nanoseconds here: %v", err)
		}
		return time.Unix(0, ns).Sub(before)
	}
	whole := func(args ...string) time.Duration {
		before := time.Now()
		run(args...)
		return time.Since(before)
	}
	help := bounded(t, "help", helpBound, func() time.Duration { return whole("true") }, func() time.Duration { return whole(bin, "help") })
	// On a machine that has other things to do, all takes longer: run starts three
	// processes, and its bound is six of the times that one takes for its help.
	bounded(t, "run", max(runBound, 6*help), func() time.Duration { return begun() }, func() time.Duration { return begun(bin, "run", "start", "--") })
}

// bounded fails if the median of with is more than the bound above that of bare, each
// time that it is measured. It returns how much it was.
func bounded(t *testing.T, what string, bound time.Duration, bare, with func() time.Duration) (more time.Duration) {
	t.Helper()
	const samples = 15
	for n := range attempts {
		var without, all []time.Duration
		for range samples {
			without, all = append(without, bare()), append(all, with())
		}
		slices.Sort(without)
		slices.Sort(all)
		more = all[samples/2] - without[samples/2]
		t.Logf("%s: %v more than the bare command's %v, of %v (attempt %d)", what, more.Round(100*time.Microsecond), without[samples/2].Round(100*time.Microsecond), bound.Round(time.Millisecond), n+1)
		if more <= bound {
			return more
		}
	}
	t.Errorf("%s takes more than %v beyond the bare command, %d times", what, bound, attempts)
	return more
}
