package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zklock/zklock/test/harness"
)

// catchWait bounds the wait for a write of a holder. On a busy machine, there may be none
// for seconds.
const catchWait = 20 * time.Second

// workerFaults are faults of worker processes.
func workerFaults() []fault {
	return []fault{
		{name: "worker killed", inject: func(_ context.Context, s *round, step Step) (bool, error) {
			s.kill(step.Target % len(s.workers))
			return true, nil
		}},
		{name: "holder killed", inject: func(_ context.Context, s *round, _ Step) (bool, error) {
			i, c := s.catch()
			if c == nil {
				return false, nil
			}
			s.kill(i)
			c.Free()
			return true, nil
		}},
		{name: "worker stopped", inject: func(ctx context.Context, s *round, step Step) (bool, error) {
			return s.stop(ctx, step.Target%len(s.workers), 2*s.span(step), func() {}), nil
		}},
		{name: "holder stopped", inject: func(ctx context.Context, s *round, step Step) (bool, error) {
			i, c := s.catch()
			if c == nil {
				return false, nil
			}
			// In most steps, stop it until another client has written under the lock.
			return s.stop(ctx, i, 2*s.span(step), func() {
				late, cancel := context.WithTimeout(ctx, 4*s.server.Timeout)
				defer cancel()
				for (step.Detail%3 != 0 || s.stale == 0) && !s.resource.Passed(c) && harness.Sleep(late, 5*time.Millisecond) {
				}
				c.Free()
			}), nil
		}},
		{name: "worker without files", suits: hasRelays, inject: func(ctx context.Context, s *round, step Step) (bool, error) {
			i := step.Target % len(s.workers)
			return withoutFiles(ctx, s, s.workers[i].Pid(), i, step)
		}},
		{name: "worker starved", suits: hasRelays, inject: func(ctx context.Context, s *round, step Step) (bool, error) {
			return starve(ctx, s, s.workers[step.Target%len(s.workers)].Pid(), step)
		}},
	}
}

// restartFaults are faults of a server that can be killed and restarted.
func restartFaults() []fault {
	return []fault{{name: "server killed", inject: func(ctx context.Context, s *round, _ Step) (bool, error) {
		return true, s.server.Restart(ctx)
	}}}
}

// serverFaults are faults of a server's process.
func serverFaults() []fault {
	return []fault{
		{name: "server stopped", inject: func(ctx context.Context, s *round, step Step) (bool, error) {
			if err := s.server.Stop(); err != nil {
				return false, err
			}
			harness.Sleep(ctx, s.span(step))
			return true, s.server.Continue()
		}},
		{name: "server without files", inject: func(ctx context.Context, s *round, step Step) (bool, error) {
			happened, err := withoutFiles(ctx, s, s.server.Pid(), step.Target%len(s.relays), step)
			if errors.Is(err, unix.ESRCH) && s.server.Restart != nil {
				err = s.server.Restart(ctx) // ZooKeeper exits if it cannot create a file of its log
			}
			return happened, err
		}},
		{name: "server starved", inject: func(ctx context.Context, s *round, step Step) (bool, error) {
			return starve(ctx, s, s.server.Pid(), step)
		}},
	}
}

// catch delays the write of a worker that holds a lock. It returns the worker, and the write
// that the caller must free. It returns nil if no worker writes.
func (s *round) catch() (i int, c *Caught) {
	if c = s.resource.Catch(catchWait); c == nil {
		return 0, nil
	}
	for i, w := range s.workers {
		if w.orders.Number == c.Worker {
			return i, c
		}
	}
	c.Free() // the worker was killed
	return 0, nil
}

// stop stops a worker by SIGSTOP for d, and calls ready before the worker continues.
func (s *round) stop(ctx context.Context, i int, d time.Duration, ready func()) bool {
	happened := s.signal(i, syscall.SIGSTOP)
	if happened {
		harness.Sleep(ctx, d)
	}
	ready()
	return s.signal(i, syscall.SIGCONT) && happened
}

// withoutFiles prevents a process from opening files for the step's time. It also cuts the
// connections of the i-th relay, so that the process needs new ones.
func withoutFiles(ctx context.Context, s *round, pid, i int, step Step) (bool, error) {
	var had unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &had); err != nil {
		return false, err
	}
	// Open descriptors above the limit stay open.
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: had.Max}, nil); err != nil {
		return false, err
	}
	s.relays[i].CutConnections()
	harness.Sleep(ctx, s.span(step))
	return true, unix.Prlimit(pid, unix.RLIMIT_NOFILE, &had, nil)
}

// burnEnv is the environment variable with the time for which a process uses the processor.
const burnEnv = "ZKLOCK_TEST_BURN"

// runBurner uses processor time if this process was started for that, and reports whether it
// was.
func runBurner() bool {
	text := os.Getenv(burnEnv)
	d, err := time.ParseDuration(text)
	if err != nil {
		return false
	}
	spin := func() {
		for end := time.Now().Add(d); time.Now().Before(end); {
		}
	}
	go spin() // ends after d
	spin()
	return true
}

// starved is the niceness of a starved process.
const starved = 19

// starve raises the niceness of a process, and runs two busy threads, for a part of the
// session timeout.
func starve(ctx context.Context, s *round, pid int, step Step) (bool, error) {
	had, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil {
		return false, err
	}
	had = 20 - had // the system call returns 20 minus the niceness
	if err := niceAll(pid, starved); err != nil {
		return false, err
	}
	self, err := os.Executable()
	if err != nil {
		return false, err
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%v", burnEnv, s.span(step)/2))
	burner, err := harness.Start(cmd)
	if err == nil {
		err = burner.Wait()
	}
	return err == nil, errors.Join(err, niceAll(pid, had))
}

// niceAll sets the niceness of all threads of a process. It ignores a missing permission to
// lower the niceness.
func niceAll(pid, nice int) error {
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return err
	}
	for _, t := range threads {
		var id int
		if _, err := fmt.Sscan(t.Name(), &id); err != nil {
			return err
		}
		err := unix.Setpriority(unix.PRIO_PROCESS, id, nice)
		if err != nil && !errors.Is(err, unix.ESRCH) && !errors.Is(err, unix.EACCES) {
			return err
		}
	}
	return nil
}

// A smallDisk is a small file system with a server's data.
type smallDisk struct {
	dir     string
	log     string // the server's log
	kill    func()
	restart func(context.Context) error
}

// mountSmall mounts a file system of a size until the test ends. It returns the reason if it
// cannot.
func mountSmall(tb testing.TB, dir, size string) (reason string) {
	tb.Helper()
	if os.Geteuid() != 0 {
		return "mounting a small file system needs root"
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		return "root, but may not mount: " + err.Error()
	}
	tb.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			tb.Error(err)
		}
	})
	return ""
}

// needSmall returns a directory on a small file system, or skips the test.
func needSmall(tb testing.TB, size string) string {
	tb.Helper()
	dir := tb.TempDir()
	if reason := mountSmall(tb, dir, size); reason != "" {
		harness.Skip(tb, reason)
	}
	return dir
}

// noticed returns how often the server has reported that its disk is full.
func (d *smallDisk) noticed() (int, error) {
	log, err := os.ReadFile(d.log)
	return strings.Count(string(log), "o space left on device"), err
}

// diskFaults are faults of a server's disk.
func diskFaults() []fault { return []fault{{name: "disk full", inject: fillDisk}} }

// fillDisk fills the server's disk until the server logs that, frees the disk, and restarts
// the server, which refuses writes until then.
func fillDisk(ctx context.Context, s *round, step Step) (bool, error) {
	d := s.server.Disk
	before, err := d.noticed()
	if err != nil {
		return false, err
	}
	ballast := filepath.Join(d.dir, "ballast")
	if err := fill(ballast); err != nil {
		return false, err
	}
	waiting, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	now := before
	for now == before && err == nil && harness.Sleep(waiting, 10*time.Millisecond) {
		now, err = d.noticed()
	}
	harness.Sleep(ctx, s.span(step)/2)
	d.kill()
	return now > before, errors.Join(err, os.Remove(ballast), d.restart(ctx))
}

// fill writes a file until no byte is free.
func fill(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	for chunk := make([]byte, 1<<20); err == nil; {
		_, err = f.Write(chunk)
	}
	for chunk := make([]byte, 512); errors.Is(err, syscall.ENOSPC); {
		if _, err = f.Write(chunk); err != nil {
			err = nil
		}
	}
	return errors.Join(err, f.Close())
}

func TestFillLeavesNoByteFree(t *testing.T) {
	dir := needSmall(t, "1m")
	if err := fill(filepath.Join(dir, "ballast")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "more"), []byte("x"), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a byte more: %v", err)
	}
}
