//go:build unix

package process

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ignoring waits until the kernel shows that a process ignores TERM.
func ignoring(pid int) bool {
	deadline := time.After(patience)
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			return os.IsNotExist(err) && syscall.Kill(pid, 0) == nil // no /proc: hope
		}
		if _, rest, ok := strings.Cut(string(status), "SigIgn:"); ok {
			line, _, _ := strings.Cut(rest, "\n")
			mask, err := strconv.ParseUint(strings.TrimSpace(line), 16, 64)
			if err == nil && mask&(1<<(syscall.SIGTERM-1)) != 0 && mask&(1<<(syscall.SIGHUP-1)) != 0 {
				return true
			}
		}
		select {
		case <-deadline:
			return false
		case <-look.C:
		}
	}
}
