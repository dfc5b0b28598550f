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

// TestStopLeavesStrangersAlone: the lock is taken and the process id in its file
// is that of a process that has nothing to do with it, as for a moment when a
// server begins where another was killed.
func TestStopLeavesStrangersAlone(t *testing.T) {
	p := Place{Dir: home700(t)}
	stranger := exec.Command("sleep", "1000")
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = stranger.Process.Kill()
		_ = stranger.Wait()
	}()
	lock, err := os.Create(p.lockFile())
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintln(lock, stranger.Process.Pid); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*retryEvery)
	defer cancel()
	if err := p.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Stop said %v", err)
	}
	var status syscall.WaitStatus
	if pid, err := syscall.Wait4(stranger.Process.Pid, &status, syscall.WNOHANG, nil); pid != 0 || err != nil {
		t.Errorf("the stranger has ended: %v %v", status, err)
	}
}
