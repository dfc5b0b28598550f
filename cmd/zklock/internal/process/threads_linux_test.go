package process

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

func init() {
	asHelper = append(asHelper, func() (int, bool) { // a process that reserves threads, then needs them
		n, err := strconv.Atoi(os.Getenv("RESERVE_THREADS"))
		if err != nil {
			return 0, false
		}
		if err := useReserved(n); err != nil {
			fmt.Println(err)
			return 1, true
		}
		return 0, true
	})
}

// useReserved reserves threads and then blocks all but the others in system calls. It
// returns an error unless the process has as many threads as before.
func useReserved(n int) error {
	ReserveThreads(n)
	before, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	var pipe [2]int
	if err := unix.Pipe(pipe[:]); err != nil {
		return err
	}
	ended := make(chan struct{})
	for range n - others {
		go func() { // ends when the pipe is closed
			_, _ = unix.Read(pipe[0], make([]byte, 1))
			ended <- struct{}{}
		}()
	}
	for reading := 0; reading < n-others; {
		runtime.GC() // its workers need threads too
		reading = 0
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		if len(tasks) != len(before) {
			return fmt.Errorf("the process has %d threads, and had %d", len(tasks), len(before))
		}
		for _, task := range tasks {
			call, err := os.ReadFile("/proc/self/task/" + task.Name() + "/syscall")
			if err != nil {
				return err
			}
			var number, file int
			if _, err := fmt.Sscanf(string(call), "%d 0x%x", &number, &file); err == nil && number == unix.SYS_READ && file == pipe[0] {
				reading++
			}
		}
	}
	if err := unix.Close(pipe[1]); err != nil {
		return err
	}
	for range n - others {
		<-ended
	}
	return nil
}

// TestReservedThreadsStay checks that a process that has reserved threads creates no other ones as
// long as no more calls block than that.
func TestReservedThreadsStay(t *testing.T) {
	for _, n := range []int{frontThreads, watchdogThreads, WrapperThreads} {
		for range 10 {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), fmt.Sprintf("RESERVE_THREADS=%d", n))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("with %d threads: %v\n%s", n, err, out)
			}
		}
	}
}
