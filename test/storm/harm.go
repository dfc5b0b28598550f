package storm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zklock/zklock/test/child"
)

// catchWait bounds the wait for a holder that comes by.
const catchWait = time.Second

// processFaults are what can be done to workers and to the server's process.
func processFaults() []fault {
	onDisk := func(s *Server) bool { return s.Disk != "" }
	return []fault{
		{name: "worker killed", inject: func(_ context.Context, s *Storm, step Step) (bool, error) {
			s.slay(step.Who % len(s.workers))
			return true, nil
		}},
		{name: "holder killed", inject: func(_ context.Context, s *Storm, _ Step) (bool, error) {
			i, c := s.catch()
			if c == nil {
				return false, nil
			}
			s.slay(i)
			c.Free()
			return true, nil
		}},
		{name: "worker stopped", inject: func(ctx context.Context, s *Storm, step Step) (bool, error) {
			return s.stop(ctx, step.Who%len(s.workers), 2*s.span(step), func() {}), nil
		}},
		{name: "holder stopped", inject: func(ctx context.Context, s *Storm, step Step) (bool, error) {
			i, c := s.catch()
			if c == nil {
				return false, nil
			}
			// Most of them for so long that another has the lock by then, and writes.
			d := 2 * s.span(step)
			return s.stop(ctx, i, d, func() {
				late, cancel := context.WithTimeout(ctx, 4*s.server.Timeout)
				defer cancel()
				for (step.What%3 != 0 || s.stale == 0) && !s.resource.Passed(c) && rest(late, 5*time.Millisecond) {
				}
				c.Free()
			}), nil
		}},
		{name: "server killed", inject: func(ctx context.Context, s *Storm, _ Step) (bool, error) {
			return true, s.server.Restart(ctx)
		}},
		{name: "server stopped", inject: func(ctx context.Context, s *Storm, step Step) (bool, error) {
			if err := s.server.Signal(syscall.SIGSTOP); err != nil {
				return false, err
			}
			rest(ctx, s.span(step))
			return true, s.server.Signal(syscall.SIGCONT)
		}},
		{name: "worker without files", inject: func(ctx context.Context, s *Storm, step Step) (bool, error) {
			i := step.Who % len(s.workers)
			return fileless(ctx, s, s.workers[i].proc.Pid(), i, step)
		}},
		{name: "server without files", inject: func(ctx context.Context, s *Storm, step Step) (bool, error) {
			return fileless(ctx, s, s.server.Pid(), step.Who%len(s.relays), step)
		}},
		{name: "worker starved", inject: func(ctx context.Context, s *Storm, step Step) (bool, error) {
			return starve(ctx, s, s.workers[step.Who%len(s.workers)].proc.Pid(), step)
		}},
		{name: "server starved", inject: func(ctx context.Context, s *Storm, step Step) (bool, error) {
			return starve(ctx, s, s.server.Pid(), step)
		}},
		{name: "disk full", suits: onDisk, inject: fillUp},
	}
}

// catch returns a worker that holds and is about to write, which it does once the
// write is freed; or nil if none comes by.
func (s *Storm) catch() (i int, c *Caught) {
	if c = s.resource.Catch(catchWait); c == nil {
		return 0, nil
	}
	for i, l := range s.workers {
		if l.orders.Number == c.Worker {
			return i, c
		}
	}
	c.Free() // it was killed meanwhile
	return 0, nil
}

// stop stops a worker by SIGSTOP for d; before it goes on, ready is called.
func (s *Storm) stop(ctx context.Context, i int, d time.Duration, ready func()) bool {
	happened := s.signal(i, syscall.SIGSTOP)
	if happened {
		rest(ctx, d)
	}
	ready()
	return s.signal(i, syscall.SIGCONT) && happened
}

// fileless takes the right to open another file away from a process for the step's
// time, as "ulimit -n" with what it has, and cuts the i-th proxy's connections so
// that it would have to.
func fileless(ctx context.Context, s *Storm, pid, i int, step Step) (bool, error) {
	var had unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &had); err != nil {
		return false, err
	}
	// Fewer than it has: those go on, and no other can be opened.
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: had.Max}, nil); err != nil {
		return false, err
	}
	s.relays[i].CutConnections()
	rest(ctx, s.span(step))
	return true, unix.Prlimit(pid, unix.RLIMIT_NOFILE, &had, nil)
}

// burnEnv has a process do nothing but compute for a duration.
const burnEnv = "ZKLOCK_TEST_BURN"

// Burner reports whether this process was started to burn processor time. If so it
// has done so when Burner returns.
func Burner() bool {
	text := os.Getenv(burnEnv)
	d, err := time.ParseDuration(text)
	if err != nil {
		return false
	}
	spin := func() {
		for end := time.Now().Add(d); time.Now().Before(end); {
		}
	}
	go spin() // ends after d, as this process does
	spin()
	return true
}

// The niceness of a process that is starved.
const starved = 19

// starve lets a process have only the time that two others leave, for a part of
// the session timeout.
func starve(ctx context.Context, s *Storm, pid int, step Step) (bool, error) {
	had, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil {
		return false, err
	}
	had = 20 - had // the system call's way of telling it
	if err := niceAll(pid, starved); err != nil {
		return false, err
	}
	self, err := os.Executable()
	if err != nil {
		return false, err
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%v", burnEnv, s.span(step)/2))
	burner, err := child.Start(cmd)
	if err == nil {
		err = burner.Wait()
	}
	return err == nil, errors.Join(err, niceAll(pid, had))
}

// niceAll sets the niceness of all threads of a process. Raising it back takes the
// right to: without, the process stays as it is, and only the first time counts.
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

// fillUp fills the server's disk until it notices, makes room again, and restarts
// the server, which takes no writes before.
func fillUp(ctx context.Context, s *Storm, step Step) (bool, error) {
	before := s.server.Log()
	if err := s.server.fillDisk(); err != nil {
		return false, err
	}
	waiting, cancel := context.WithTimeout(ctx, 4*s.server.Timeout)
	defer cancel()
	for !s.server.noticed(before) && rest(waiting, 10*time.Millisecond) {
	}
	happened := s.server.noticed(before)
	rest(ctx, s.span(step)/2)
	if err := s.server.emptyDisk(); err != nil {
		return happened, err
	}
	return happened, s.server.Restart(ctx)
}
