package command

import (
	"context"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zktest"
)

// TestExitCodesWithoutServers checks the exit codes and messages of zklock run if no server
// answers. Errors of the command line or the command are reported before the first connection.
func TestExitCodesWithoutServers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	host := embedded(t)
	silent := zktest.NewProxy(t, "tcp", host.Addr())
	silent.Partition()
	refusing := zktest.NewProxy(t, "tcp", host.Addr())
	refusing.Refuse(true)
	plain := filepath.Join(r.dir, "plain")
	if err := newCommand("touch", nil, plain).Run(); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		args []string
		code int
		out  string // the outcome
		says string
	}{
		{"silence", []string{"--servers", silent.Addr(), "--connect-timeout", "300ms", "demo", "--", "true"}, 125, "failed", "no server answered within 300ms"},
		{"silence, and a time to wait", []string{"--servers", silent.Addr(), "-w", "300ms", "demo", "--", "true"}, 125, "failed", "no server answered within 300ms"},
		{"silence, and no time to wait", []string{"--servers", silent.Addr(), "-n", "--connect-timeout", "300ms", "demo", "--", "true"}, 125, "failed", "no server answered within 300ms"},
		{"refusal", []string{"--servers", refusing.Addr(), "--connect-timeout", "300ms", "demo", "--", "true"}, 125, "failed", "no server answered within 300ms"},
		{"no such command", []string{"--servers", silent.Addr(), "demo", "--", "no-such-command"}, 127, "not-found", "command not found"},
		{"no permission", []string{"--servers", silent.Addr(), "demo", "--", plain}, 126, "not-executable", "no permission"},
		{"a directory", []string{"--servers", silent.Addr(), "demo", "--", r.dir}, 126, "not-executable", "it is a directory"},
		{"no name", []string{"--servers", silent.Addr(), "a//b", "--", "true"}, 2, "usage", "it has an empty level"},
		{"a grace that is too long", []string{"--servers", silent.Addr(), "--session-timeout", "2s", "--kill-after", "1s", "demo", "--", "true"}, 2, "usage", "raise the session timeout"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w, err := startWrapper(filepath.Join(t.TempDir(), "w"), r.zklock, r.env, append([]string{"run", "--status-fd", "3"}, test.args...)...)
			if err != nil {
				t.Fatal(err)
			}
			defer w.proc.Kill()
			code, status, says := w.exit(), w.text(".status"), w.text(".err")
			if code != test.code || !strings.Contains(status, `"outcome":"`+test.out+`"`) || !strings.Contains(status, `"acquired":false`) || !strings.Contains(says, test.says) {
				t.Errorf("exit code %d, want %d; status %s; stderr: %s", code, test.code, status, says)
			}
		})
	}
}

// TestRunFailsIfServersAreSilentWhileWaiting checks that zklock run fails, and does not report
// a held lock or run its command, if the servers do not answer at the end of its wait.
func TestRunFailsIfServersAreSilentWhileWaiting(t *testing.T) {
	t.Parallel()
	r, host := newRig(t), embedded(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	lock := host.locks.Mutex("demo")
	hold, err := lock.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	proxy := zktest.NewProxy(t, "tcp", host.Addr())
	ran := filepath.Join(r.dir, "ran")
	w, err := startWrapper(filepath.Join(r.dir, "w"), r.zklock, r.env,
		"run", "--servers", proxy.Addr(), "--session-timeout", "2s", "--status-fd", "3", "-w", "8s", "demo", "--", "touch", ran)
	if err != nil {
		t.Fatal(err)
	}
	defer w.proc.Kill()
	err = poll(ctx, func() bool {
		entries, err := lock.Inspect(ctx)
		return err == nil && len(entries) == 2
	})
	if err != nil {
		t.Fatalf("the wrapper does not wait: %v: %s", err, w.text(".err"))
	}
	proxy.Partition()
	if err := hold.Release(ctx); err != nil {
		t.Fatal(err)
	}
	if code, status := w.exit(), w.text(".status"); code != 125 || !strings.Contains(status, `"outcome":"failed"`) {
		t.Errorf("exit code %d, status %s; stderr: %s", code, status, w.text(".err"))
	}
	if err := newCommand("test", nil, "-e", ran).Run(); err == nil {
		t.Error("its command ran")
	}
	// The lock is free after the wrapper's session has expired.
	hold, err = lock.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := hold.Release(ctx); err != nil {
		t.Error(err)
	}
}

// TestWatchdogEndsCommandOfStoppedWrapper checks that a wrapper that was stopped and continued
// reports that the watchdog ended its command because the lock was lost.
func TestWatchdogEndsCommandOfStoppedWrapper(t *testing.T) {
	t.Parallel()
	var f *Fault
	for _, g := range Faults() {
		if g.Name == "wrapper stopped" {
			f = g
		}
	}
	began := time.Now()
	trial, o := one(t, f, Variants()[1])
	if len(o.Violations) > 0 {
		t.Error(o.Violations)
	}
	if status := trial.old.text(".status"); !strings.Contains(status, `"outcome":"lost","exit":120`) || !strings.Contains(status, `"signal":9`) {
		t.Errorf("the status is %s", status)
	}
	t.Logf("margin %v, in %v", o.Margins, time.Since(began))
}

// TestLockBrokenBeforeRelease checks that run and lock exit with code 120 if another client
// deletes the entry while the command ends, so that only the release detects it.
func TestLockBrokenBeforeRelease(t *testing.T) {
	t.Parallel()
	r, host := newRig(t), embedded(t)
	for _, verb := range []string{"run", "lock"} {
		t.Run(verb, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			proxy := zktest.NewProxy(t, "tcp", host.Addr())
			goOn := filepath.Join(t.TempDir(), "go-on")
			args := []string{verb, "--servers", proxy.Addr()}
			if verb == "run" { // the command prints when it has started
				args = append(args, "--status-fd", "3", "demo", "--", "sh", "-c", "echo started; while [ ! -e "+goOn+" ]; do sleep 0.02; done")
			} else {
				args = append(args, "demo")
			}
			w, err := startWrapper(filepath.Join(t.TempDir(), "w"), r.zklock, r.env, args...)
			if err != nil {
				t.Fatal(err)
			}
			defer w.proc.Kill()
			var entries []zklock.Entry
			if err := poll(ctx, func() bool {
				entries, err = host.locks.Mutex("demo").Inspect(ctx)
				return err == nil && len(entries) == 1 && w.text(".out") != ""
			}); err != nil {
				t.Fatalf("it does not hold: %v: %s", err, w.text(".err"))
			}
			// The event and the answers to heartbeats arrive after the client has sent its delete.
			proxy.DelayFunc(func(f zktest.Frame) time.Duration {
				if f.Direction == zktest.ToClient {
					return 3 * time.Second
				}
				return 0
			})
			if err := host.zk.Delete(ctx, entries[0].Node, -1); err != nil {
				t.Fatal(err)
			}
			if verb == "run" {
				err = newCommand("touch", nil, goOn).Run()
			} else {
				err = w.proc.Signal(syscall.SIGTERM)
			}
			if err != nil {
				t.Fatal(err)
			}
			if code, says := w.exit(), w.text(".err"); code != 120 || !strings.Contains(says, "the hold is lost: the lock's znode was deleted") {
				t.Errorf("exit code %d; stderr: %s", code, says)
			}
			if status := w.text(".status"); verb == "run" && (!strings.Contains(status, `"outcome":"lost"`) || strings.Contains(status, `"signal"`)) {
				t.Errorf("the status is %s", status)
			}
		})
	}
}
