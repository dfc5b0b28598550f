//go:build unix

package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

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
	lock, err := os.Create(p.lockFile())
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
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
