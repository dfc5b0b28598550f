package command

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zklock/zklock/test/harness"
)

// TestSlowExecIsSupervised checks that a command whose exec a file system delays for longer than
// the session timeout is not ended, and that TERM ends it before it begins. A lease of the
// command's file delays the exec.
func TestSlowExecIsSupervised(t *testing.T) {
	t.Parallel()
	r, host := newRig(t), embedded(t)
	for name, test := range map[string]struct {
		term bool
		code int
		out  string // part of the status line
	}{
		"begins late": {false, 3, `"outcome":"exited","exit":3`},
		"gets TERM":   {true, exitTerm, `"outcome":"signalled","exit":143`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			dir := t.TempDir()
			file := filepath.Join(dir, "command")
			if err := os.WriteFile(file, []byte("#!/bin/sh\nexit 3\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			lease, err := os.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			defer lease.Close() // ends the lease
			if _, err := unix.FcntlInt(lease.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
				harness.Skip(t, "the file system grants no lease: "+err.Error())
			}
			lock := filepath.Base(filepath.Dir(dir))
			w, err := startWrapper(filepath.Join(dir, "w"), r.zklock, r.env, "run", "--servers", host.Addr(),
				"--session-timeout", "2s", "--status-fd", "3", lock, "--", file)
			if err != nil {
				t.Fatal(err)
			}
			defer w.proc.Kill()
			err = poll(ctx, func() bool { // the kernel wants the lease back
				kind, err := unix.FcntlInt(lease.Fd(), unix.F_GETLEASE, 0)
				return err == nil && kind != unix.F_WRLCK
			})
			if err != nil {
				t.Fatalf("the exec has not begun: %v: %s", err, w.text(".err"))
			}
			if test.term {
				err = signal(syscall.SIGTERM, w.proc.Pid())
			} else {
				harness.Sleep(ctx, 4*time.Second) // the watchdog would act on the first deadline by then
				err = lease.Close()
			}
			if err != nil {
				t.Fatal(err)
			}
			if code, status := w.exit(), w.text(".status"); code != test.code || !strings.Contains(status, test.out) {
				t.Errorf("exit code %d, status %s; stderr: %s", code, status, w.text(".err"))
			}
		})
	}
}
