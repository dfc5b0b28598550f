//go:build unix

package local

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// lockServer locks the place as a running server does, until the test ends.
func lockServer(t *testing.T, p Place) *os.File {
	t.Helper()
	lock, err := os.Create(p.lockFile())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lock.Close() })
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	return lock
}

// TestStopSparesOtherProcesses: the server is locked, and its file has the process ID of another
// program, as for a moment after a server replaced one that was killed.
func TestStopSparesOtherProcesses(t *testing.T) {
	p := Place{Dir: home700(t)}
	other := exec.Command("sleep", "1000")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = other.Process.Kill()
		_ = other.Wait()
	}()
	lock := lockServer(t, p)
	if _, err := fmt.Fprintln(lock, other.Process.Pid); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*retryEvery)
	defer cancel()
	if err := p.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Stop returned %v", err)
	}
	var status syscall.WaitStatus
	if pid, err := syscall.Wait4(other.Process.Pid, &status, syscall.WNOHANG, nil); pid != 0 || err != nil {
		t.Errorf("the other process has ended: %v %v", status, err)
	}
}

// TestControlRefusesDirectoryOfAnotherUser: the directory names the socket of another program of
// this user, which is the process that Stop would end.
func TestControlRefusesDirectoryOfAnotherUser(t *testing.T) {
	mine := home700(t)
	ln, err := net.Listen("unix", filepath.Join(mine, "agent"))
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	p := Place{Dir: home700(t)}
	if err := os.WriteFile(p.socketFile(), []byte(ln.Addr().String()+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	lockServer(t, p)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGTERM)
	defer signal.Stop(signals)
	check := func(why string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 10*retryEvery)
		defer cancel()
		var refused *DirError
		if err := p.Stop(ctx); !errors.As(err, &refused) {
			t.Errorf("%s: Stop returned %v", why, err)
		}
		if _, err := p.Status(ctx); !errors.As(err, &refused) {
			t.Errorf("%s: Status returned %v", why, err)
		}
		if conn, err := p.Connect(ctx); !errors.As(err, &refused) {
			t.Errorf("%s: Connect returned %v, %v", why, conn, err)
		}
		if len(signals) > 0 {
			t.Fatalf("%s: Stop sent %v to another program", why, <-signals)
		}
	}
	if err := os.Chmod(p.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	check("open to others")
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: needs root to make a directory another user's")
	}
	if err := errors.Join(os.Chmod(p.Dir, 0o700), os.Chown(p.Dir, 12345, -1)); err != nil {
		t.Fatal(err)
	}
	check("of another user")
}

// TestControlCreatesNothing: commands that need no server leave no directory behind.
func TestControlCreatesNothing(t *testing.T) {
	p := Place{Dir: filepath.Join(t.TempDir(), "a", "b")}
	if err := p.Stop(t.Context()); !errors.Is(err, ErrNotRunning) {
		t.Errorf("Stop returned %v", err)
	}
	if _, err := p.Status(t.Context()); !errors.Is(err, ErrNotRunning) {
		t.Errorf("Status returned %v", err)
	}
	if _, err := os.Stat(filepath.Dir(p.Dir)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory: %v", err)
	}
}
