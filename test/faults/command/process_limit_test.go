package command

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zklock/zklock/test/harness"
)

// forker is a job that starts processes until it may start no more, and then keeps trying. It
// writes a line at each failure. Every second process is in a session of its own.
const forker = `use POSIX; $| = 1;
for (my $n = 0; ; ) {
	my $pid = fork;
	if (!defined $pid) { print "full\n"; select(undef, undef, undef, 0.005); next }
	if (!$pid) { POSIX::setsid() if $n % 2; $SIG{TERM} = "IGNORE"; sleep 1000 while 1 }
	$n++;
}`

// TestProcessLimitEndsNoGuard checks that a job that uses up its user's process limit ends neither
// the wrapper nor the watchdog, which need threads: the limit counts threads. If the wrapper is
// then killed, no process of the job is left when another client gets the lock.
func TestProcessLimitEndsNoGuard(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		harness.Skip(t, "it needs root, to run jobs as users with a process limit")
	}
	for _, tool := range []string{"setpriv", "prlimit", "perl"} {
		if _, err := exec.LookPath(tool); err != nil {
			harness.SkipOrFail(t, err.Error())
		}
	}
	r, host := newRig(t), embedded(t)
	zklock := publicCopy(t, r.zklock)
	for n := range 6 {
		user, most := 54400+n, 50+4*n
		t.Run(fmt.Sprintf("limit %d", most), func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if found := runningAs(t, user); len(found) > 0 {
				t.Fatalf("user %d has processes: %v", user, found)
			}
			t.Cleanup(func() {
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				_ = poll(ctx, func() bool { // they start each other
					found := runningAs(t, user)
					_ = signal(syscall.SIGKILL, found...)
					return len(found) == 0
				})
			})
			id := strconv.Itoa(user)
			w, err := startWrapper(filepath.Join(r.dir, "limit-"+id), "setpriv", r.env,
				"--reuid", id, "--regid", id, "--clear-groups", "prlimit", "--nproc="+strconv.Itoa(most),
				zklock, "run", "--servers", host.Addr(), "--session-timeout", longest.String(), "limit-"+id, "--", "perl", "-e", forker)
			if err != nil {
				t.Fatal(err)
			}
			defer w.proc.Kill()
			over := func() bool {
				select {
				case <-w.proc.Done():
					return true
				default:
					return false
				}
			}
			fails := func(n int) {
				if err := poll(ctx, func() bool { return over() || strings.Count(w.text(".out"), "full") >= n }); err != nil || over() {
					t.Fatalf("the wrapper has ended with exit code %d, %v: %.2000s", w.exit(), err, w.text(".err"))
				}
			}
			fails(1)
			watchdog := watchdogOf(w.proc.Pid())
			fails(400) // for at least 2 s, which is several heartbeats
			if now := watchdogOf(w.proc.Pid()); now == 0 || now != watchdog {
				t.Errorf("the watchdog was %d, and is %d: %.2000s", watchdog, now, w.text(".err"))
			}
			if err := signal(syscall.SIGKILL, w.proc.Pid()); err != nil {
				t.Fatal(err)
			}
			hold, err := host.locks.Mutex("limit-" + id).Acquire(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if found := runningAs(t, user); len(found) > 0 {
				t.Errorf("%d processes of the job live when the lock is granted again", len(found))
			}
			if err := hold.Release(ctx); err != nil {
				t.Error(err)
			}
		})
	}
}

// publicCopy copies a program to where every user may run it.
func publicCopy(t *testing.T, program string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "zkp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	file := filepath.Join(dir, filepath.Base(program))
	b, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return file
}

// runningAs returns the processes of a user that have not got KILL.
func runningAs(t *testing.T, user int) (found []int) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		info, err := e.Info()
		if err != nil {
			continue // it has ended
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) == user && !killPending(pid) {
			found = append(found, pid)
		}
	}
	return found
}
