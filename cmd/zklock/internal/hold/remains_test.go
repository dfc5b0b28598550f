package hold

import (
	"errors"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/cmd/zklock/internal/clitest"
	"github.com/zklock/zklock/cmd/zklock/internal/process"
)

// TestRemainsEndBeforeTheRelease checks that the supervisor returns, and the lock is released,
// only when no process of a terminated command is left.
func TestRemainsEndBeforeTheRelease(t *testing.T) {
	term := func(_ *fakeHold, p *fakeProcess, c chan os.Signal) {
		c <- syscall.SIGTERM
		p.exited <- process.Exit{Code: -1, Signal: int(syscall.SIGTERM)}
	}
	tests := []struct {
		name  string
		left  int
		lasts time.Duration
		run   func(*fakeHold, *fakeProcess, chan os.Signal)
		log   []string
		took  time.Duration // minimum; the maximum is one interval more
		ended bool
	}{
		{"nothing is left", 0, 0, term, []string{"terminated@0s"}, 0, false},
		{"what is left obeys", leftObey, time.Second, term, []string{"terminated@0s", "TERM to what is left@0s"}, time.Second, false},
		{"what is left ignores TERM", leftIgnore, 0, term, []string{"terminated@0s", "TERM to what is left@0s", "KILL@2s"}, 2 * time.Second, false},
		{"the command catches TERM", leftObey, time.Second, func(_ *fakeHold, p *fakeProcess, c chan os.Signal) {
			c <- syscall.SIGTERM
			p.exited <- process.Exit{Code: 0}
		}, []string{"terminated@0s", "TERM to what is left@0s"}, time.Second, false},
		{"a second TERM is passed on", leftIgnore, 0, func(h *fakeHold, p *fakeProcess, c chan os.Signal) {
			term(h, p, c)
			time.Sleep(time.Second)
			c <- syscall.SIGTERM
		}, []string{"terminated@0s", "TERM to what is left@0s", "terminated@1s", "KILL@2s"}, 2 * time.Second, false},
		{"a signal from elsewhere", leftIgnore, 0, func(_ *fakeHold, p *fakeProcess, _ chan os.Signal) {
			p.exited <- process.Exit{Code: -1, Signal: killSignal}
		}, []string{"TERM@0s", "KILL@2s"}, 2 * time.Second, false},
		{"^C, which a program catches", leftObey, 0, func(_ *fakeHold, p *fakeProcess, _ chan os.Signal) {
			p.exited <- process.Exit{Code: 130}
		}, []string{"TERM@0s"}, 0, false},
		{"the command ends by itself, and leaves something in the background", leftIgnore, 0, func(_ *fakeHold, p *fakeProcess, _ chan os.Signal) {
			p.exited <- process.Exit{Code: 7}
		}, nil, signalGrace, false},
		{"a shutdown signals all processes, and the command is faster than this one", leftIgnore, 0, func(_ *fakeHold, p *fakeProcess, c chan os.Signal) {
			p.exited <- process.Exit{Code: 0}
			time.Sleep(time.Millisecond)
			c <- syscall.Signal(28) // SIGWINCH, which Windows lacks
			c <- syscall.SIGTERM
		}, []string{"window changed@1ms", "terminated@1ms", "TERM to what is left@1ms", "KILL@2.001s"}, 2001 * time.Millisecond, false},
		{"silence", leftIgnore, 0, func(_ *fakeHold, p *fakeProcess, _ chan os.Signal) {
			time.Sleep(12500*time.Millisecond + 1)
			p.exited <- process.Exit{Code: 0}
		}, []string{"TERM@12.5s", "TERM to what is left@12.500000001s", "KILL@14.5s"}, 14500 * time.Millisecond, true},
		{"the lock is lost meanwhile", leftIgnore, 0, func(h *fakeHold, p *fakeProcess, c chan os.Signal) {
			term(h, p, c)
			time.Sleep(time.Second)
			h.lose(errors.New("the znode is gone"))
		}, []string{"terminated@0s", "TERM to what is left@0s", "KILL@1s"}, time.Second, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hold, cmd := newFakeHold(15*time.Second), newFakeProcess(false)
				cmd.left, cmd.lasts = tt.left, tt.lasts
				s, _, signals := newTestSupervisor(hold, cmd)
				began := time.Now()
				go tt.run(hold, cmd, signals)
				_, ended := s.run()
				if took := time.Since(began); took < tt.took || took > tt.took+remainsMost {
					t.Errorf("it took %v, want %v", took, tt.took)
				}
				// KILL is repeated until no process is left.
				if log := slices.Compact(cmd.log); ended != tt.ended || !slices.Equal(log, tt.log) {
					t.Errorf("ended %v after %q; want %v after %q", ended, log, tt.ended, tt.log)
				}
				synctest.Wait()
			})
		})
	}
}

// TestShutdownCountsAfterTheExit checks that a supervisor takes a signal into account that
// reaches it together with the exit of the command, or shortly afterwards if a success would be
// recorded: the command may have exited because of the same signal.
func TestShutdownCountsAfterTheExit(t *testing.T) {
	for range 50 { // select chooses at random
		synctest.Test(t, func(t *testing.T) {
			for _, records := range []bool{false, true} {
				for _, later := range []time.Duration{0, signalGrace - 1} {
					if later > 0 && !records {
						continue
					}
					cmd := newFakeProcess(false)
					s, _, _ := newTestSupervisor(newFakeHold(15*time.Second), cmd)
					signals := make(chan os.Signal, 1)
					s.signals, s.records = signals, records
					go func() {
						cmd.exited <- process.Exit{Code: 0}
						time.Sleep(later)
						signals <- syscall.SIGTERM
					}()
					synctest.Wait()
					if exit, _ := s.run(); exit.Status() != 0 || !s.stopping {
						t.Errorf("a success is recorded: %v, the signal comes %v after the exit: %+v, stopping %v", records, later, exit, s.stopping)
					}
				}
			}
		})
	}
}

// TestRemainsThatCannotBeKilled checks that the lock is kept while such processes run, with a
// warning. After the lock is lost and its deadline has passed, the supervisor returns and warns
// that they still run.
func TestRemainsThatCannotBeKilled(t *testing.T) {
	const run = "processes of the command still run after KILL (they may belong to another user): keeping the lock until they end, on zk1:2181\n"
	const unlisted = "cannot list the processes of the command: keeping the lock until that is possible and they have ended, on zk1:2181: too many open files\n"
	const lostRun = "the lock is lost, but processes of the command still run after KILL (they may belong to another user), on zk1:2181\n"
	const lostUnlisted = "the lock is lost, but processes of the command may still run, because they cannot be listed, on zk1:2181: too many open files\n"
	for _, tt := range []struct {
		lost     bool
		listErr  error
		warnings []string
	}{
		{false, nil, []string{run}},
		{true, nil, []string{run, lostRun}},
		{false, syscall.EMFILE, []string{unlisted}},
		{true, syscall.EMFILE, []string{unlisted, lostUnlisted}},
	} {
		synctest.Test(t, func(t *testing.T) {
			lost := tt.lost
			hold, cmd := newFakeHold(15*time.Second), newFakeProcess(false)
			cmd.left, cmd.listErr = leftBeyond, tt.listErr
			s, _, _ := newTestSupervisor(hold, cmd)
			s.servers = ", on zk1:2181"
			began := time.Now()
			go func() {
				cmd.exited <- process.Exit{Code: -1, Signal: int(syscall.SIGTERM)}
				for range 10 {
					time.Sleep(10 * time.Second)
					hold.extend(15 * time.Second)
				}
				time.Sleep(10 * time.Second)
				if lost {
					hold.lose(errors.New("the znode is gone"))
				} else {
					cmd.end()
				}
			}()
			said := clitest.Stderr(t, func() { s.run() })
			want := 110 * time.Second
			if lost {
				want = 115 * time.Second // the deadline that was seen last
			}
			if took := time.Since(began); took < want || took > want+time.Second+remainsMost {
				t.Errorf("lost %v: it took %v, want %v", lost, took, want)
			}
			for _, warning := range []string{run, unlisted, lostRun, lostUnlisted} {
				want := 0
				if slices.Contains(tt.warnings, warning) {
					want = 1
				}
				if n := strings.Count(said, "zklock: "+warning); n != want {
					t.Errorf("lost %v, %v: printed %d times, want %d: %s\n%s", lost, tt.listErr, n, want, warning, said)
				}
			}
			synctest.Wait()
		})
	}
}

// TestRemainsGetKillAfterALateLoss: this process was suspended or stopped until after the
// deadline. The remaining processes get KILL, and time to end before a message says that they
// still run.
func TestRemainsGetKillAfterALateLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold, cmd := newFakeHold(15*time.Second), newFakeProcess(false)
		cmd.left = leftIgnore
		cmd.lasts = 100 * time.Millisecond
		s, _, signals := newTestSupervisor(hold, cmd)
		var suspended atomic.Int64
		clock := s.now
		s.now = func() time.Duration { return clock() + time.Duration(suspended.Load()) }
		go func() {
			signals <- syscall.SIGTERM
			cmd.exited <- process.Exit{Code: -1, Signal: int(syscall.SIGTERM)}
			time.Sleep(time.Second)
			suspended.Store(int64(time.Hour))
			hold.lose(errors.New("the session expired"))
		}()
		if said := clitest.Stderr(t, func() { s.run() }); strings.Contains(said, "still run after KILL") {
			t.Errorf("what ends at KILL is reported: %s", said)
		}
		if cmd.Left() {
			t.Error("the supervisor does not wait for the end")
		}
		synctest.Wait()
	})
}
