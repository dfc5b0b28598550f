package hold

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/cmd/zklock/internal/cli"
	"github.com/zklock/zklock/cmd/zklock/internal/clitest"
	"github.com/zklock/zklock/cmd/zklock/internal/process"
)

// fakeHold is a hold with a deadline that the test sets.
type fakeHold struct {
	mu    sync.Mutex
	until time.Time
	err   error
	done  chan struct{}
}

func newFakeHold(d time.Duration) *fakeHold {
	return &fakeHold{until: time.Now().Add(d), done: make(chan struct{})}
}

func (h *fakeHold) Remaining() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err != nil {
		return 0
	}
	return max(time.Until(h.until), 0)
}

func (h *fakeHold) Err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}

func (h *fakeHold) Done() <-chan struct{} { return h.done }

// extend sets the deadline, as an answered heartbeat does.
func (h *fakeHold) extend(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.until = time.Now().Add(d)
}

// lose ends the hold.
func (h *fakeHold) lose(err error) {
	h.mu.Lock()
	h.err = err
	h.mu.Unlock()
	close(h.done)
}

// fakeProcess records the signals that it gets, with their times.
type fakeProcess struct {
	began   time.Time
	exited  chan process.Exit
	stopped chan int
	mu      sync.Mutex
	log     []string
	obeys   bool          // exits on TERM
	left    int           // what ends the processes that outlive the command; 0 for none
	lasts   time.Duration // the time that they take to end
	listErr error         // the error of listing them
	until   time.Duration // the last time that TERM may take
}

// The signal that ends the processes that outlive a command.
const (
	leftObey   = 1 + iota // TERM
	leftIgnore            // KILL
	leftBeyond            // nothing
)

// afterTERM ends the processes that TERM ends.
func (p *fakeProcess) afterTERM() {
	if p.remaining() == leftObey {
		time.AfterFunc(p.lasts, p.end)
	}
}

func (p *fakeProcess) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = 0
}

func (p *fakeProcess) remaining() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.left
}

func (p *fakeProcess) Left() bool       { return p.remaining() != 0 }
func (p *fakeProcess) ListError() error { return p.listErr }

func (p *fakeProcess) TerminateLeft(until time.Duration) {
	p.until = until
	p.note("TERM to what is left")
	p.afterTERM()
}

func newFakeProcess(obeys bool) *fakeProcess {
	return &fakeProcess{began: time.Now(), exited: make(chan process.Exit, 2), stopped: make(chan int), obeys: obeys}
}

func (p *fakeProcess) note(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.log = append(p.log, what+"@"+time.Since(p.began).String())
}

func (p *fakeProcess) Exited() <-chan process.Exit { return p.exited }
func (p *fakeProcess) Stopped() <-chan int         { return p.stopped }
func (p *fakeProcess) Group() int                  { return 77 }
func (p *fakeProcess) Signal(s os.Signal)          { p.note(s.String()) }

func (p *fakeProcess) Terminate(until time.Duration) {
	p.until = until
	p.note("TERM")
	p.afterTERM()
	if p.obeys {
		p.exited <- process.Exit{Code: 0}
		p.obeys = false
	}
}

func (p *fakeProcess) Kill() {
	p.note("KILL")
	switch p.remaining() {
	case leftIgnore:
		if p.lasts == 0 {
			p.end()
		} else {
			time.AfterFunc(p.lasts, p.end)
		}
	case 0: // otherwise, the command has ended before
		select {
		case p.exited <- process.Exit{Code: -1, Signal: 9}:
		default:
		}
	}
}

// fakeWatchdog records what it got last.
type fakeWatchdog struct {
	died   chan struct{}
	group  int
	until  time.Duration
	broken atomic.Bool // further calls of Until fail
	killed bool
	closed bool
}

func newFakeWatchdog() *fakeWatchdog { return &fakeWatchdog{died: make(chan struct{})} }

func (g *fakeWatchdog) Died() <-chan struct{}         { return g.died }
func (g *fakeWatchdog) Watch(n int, _ []string) error { g.group = n; return nil }
func (g *fakeWatchdog) Bye()                          { g.closed = true }

func (g *fakeWatchdog) Until(d time.Duration) error {
	if g.broken.Load() {
		return errors.New("broken pipe")
	}
	g.until = d
	return nil
}

func (g *fakeWatchdog) Kill() {
	if !g.killed {
		close(g.died)
	}
	g.killed = true
}

// fakeHook records its starts, with the signals that the command got before.
type fakeHook struct {
	cmd    *fakeProcess
	starts []string
}

func (h *fakeHook) Start(reason string) error {
	h.starts = append(h.starts, fmt.Sprint(reason, " after ", h.cmd.log))
	return nil
}

// newTestSupervisor returns a supervisor with fakes, and a session timeout of 20 s. TERM is due
// 2.5 s before the deadline, and KILL 0.5 s.
func newTestSupervisor(hold *fakeHold, cmd *fakeProcess) (*supervisor, *fakeWatchdog, chan os.Signal) {
	guard := newFakeWatchdog()
	signals := make(chan os.Signal)
	began := time.Now()
	return &supervisor{hold: hold, cmd: cmd, plan: defaultPlan(20 * time.Second), timeout: func() time.Duration { return 20 * time.Second }, watchdog: guard, signals: signals,
		now: func() time.Duration { return time.Since(began) }}, guard, signals
}

func TestSupervise(t *testing.T) {
	gone := errors.New("the znode is gone")
	tests := []struct {
		name  string
		obeys bool
		play  func(*fakeHold, *fakeProcess, chan os.Signal)
		log   []string
		ended bool
	}{
		{"a command that ends by itself", true, func(_ *fakeHold, p *fakeProcess, _ chan os.Signal) {
			p.exited <- process.Exit{Code: 7}
		}, nil, false},
		{"silence: TERM, then KILL before the deadline", false, func(*fakeHold, *fakeProcess, chan os.Signal) {
		}, []string{"TERM@12.5s", "KILL@14.5s"}, true},
		{"silence, and a command that obeys", true, func(*fakeHold, *fakeProcess, chan os.Signal) {
		}, []string{"TERM@12.5s"}, true},
		{"heartbeats keep it going", true, func(h *fakeHold, p *fakeProcess, _ chan os.Signal) {
			for range 20 {
				time.Sleep(10 * time.Second)
				h.extend(15 * time.Second)
			}
			p.exited <- process.Exit{}
		}, nil, false},
		{"lost at once", false, func(h *fakeHold, _ *fakeProcess, _ chan os.Signal) {
			time.Sleep(1500 * time.Millisecond)
			h.lose(gone)
		}, []string{"KILL@1.5s"}, true},
		{"signals pass", true, func(_ *fakeHold, p *fakeProcess, c chan os.Signal) {
			c <- syscall.SIGHUP
			c <- syscall.SIGTERM
			p.exited <- process.Exit{}
		}, []string{"hangup@0s", "terminated@0s"}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hold, cmd := newFakeHold(15*time.Second), newFakeProcess(tt.obeys)
				s, guard, signals := newTestSupervisor(hold, cmd)
				go tt.play(hold, cmd, signals)
				_, ended := s.run()
				if ended != tt.ended || !slices.Equal(cmd.log, tt.log) {
					t.Errorf("ended %v after %q; want %v after %q", ended, cmd.log, tt.ended, tt.log)
				}
				if guard.until == 0 {
					t.Error("the watchdog was told nothing")
				}
				synctest.Wait()
			})
		})
	}
}

// TestShorterTimeoutShortensPlan: the client moves to a server that grants a shorter session
// timeout. Heartbeats keep the command running. The signals and the time of the watchdog follow
// the shorter timeout.
func TestShorterTimeoutShortensPlan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold, cmd := newFakeHold(15*time.Second), newFakeProcess(false)
		s, guard, _ := newTestSupervisor(hold, cmd)
		var granted atomic.Int64
		granted.Store(int64(20 * time.Second))
		s.timeout = func() time.Duration { return time.Duration(granted.Load()) }
		go func() { // ends when the servers fall silent
			time.Sleep(time.Second)
			granted.Store(int64(4 * time.Second))
			for range 20 {
				hold.extend(2500 * time.Millisecond)
				time.Sleep(500 * time.Millisecond)
			}
		}()
		s.run()
		// The last heartbeat is at 10.5 s, so the deadline is at 13 s.
		if want := []string{"TERM@12.4s", "KILL@12.9s"}; !slices.Equal(cmd.log, want) {
			t.Errorf("the command got %q, want %q", cmd.log, want)
		}
		if want := 12950 * time.Millisecond; guard.until != want {
			t.Errorf("the watchdog kills at %v, want %v", guard.until, want)
		}
	})
}

// TestTimeoutShortensDuringStep: the client moves to a server that grants a shorter session
// timeout while the supervisor reads the hold and the timeout. The plan for the longer timeout
// does not apply to the remaining time of the shorter one.
func TestTimeoutShortensDuringStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold, cmd := newFakeHold(15*time.Second), newFakeProcess(false)
		s, _, _ := newTestSupervisor(hold, cmd)
		granted := 20 * time.Second
		s.timeout = func() time.Duration {
			read := granted
			if granted > 4*time.Second {
				granted = 4 * time.Second
				hold.extend(2500 * time.Millisecond)
			}
			return read
		}
		s.run()
		if want := []string{"TERM@1.9s", "KILL@2.4s"}; !slices.Equal(cmd.log, want) {
			t.Errorf("the command got %q, want %q", cmd.log, want)
		}
	})
}

// TestBlockedStandardErrorDelaysNoSignal checks that the command gets its signals although
// standard error blocks, as on a terminal after Ctrl-S.
func TestBlockedStandardErrorDelaysNoSignal(t *testing.T) {
	r, restore := clitest.BlockStderr(t)
	hold, cmd := newFakeHold(time.Hour), newFakeProcess(false)
	s, _, _ := newTestSupervisor(hold, cmd)
	events := make(chan zklock.Event)
	s.events = events
	ended := make(chan bool, 1)
	go func() {
		_, lost := s.run()
		ended <- lost
	}()
	events <- zklock.Event{Err: errors.New("no server answers")} // the message blocks
	hold.lose(errors.New("the znode is gone"))
	select {
	case lost := <-ended:
		if !lost {
			t.Error("the loss did not end the command")
		}
	case <-time.After(time.Minute):
		t.Error("the command runs although the lock is lost")
	}
	for text := bufio.NewScanner(r); text.Scan() && !strings.Contains(text.Text(), "killing the command"); {
	}
	restore()
}

// TestTerminateMayTakeUntilKill checks that TERM to many processes does not delay KILL, and may
// take until KILL is due.
func TestTerminateMayTakeUntilKill(t *testing.T) {
	const never = time.Hour
	for name, tt := range map[string]struct {
		limit, signal, request, exit time.Duration // their times; limit 0 means none
	}{
		"no answer":                                      {0, never, never, never},
		"no answer, and the command obeys":               {0, never, never, 13500 * time.Millisecond},
		"no answer, and a release request after TERM":    {0, never, 13500 * time.Millisecond, never},
		"--max-hold":                                     {time.Second, never, never, never},
		"--max-hold, and the command obeys":              {time.Second, never, never, 2 * time.Second},
		"--max-hold, and a release request after TERM":   {time.Second, never, 2 * time.Second, never},
		"a release request":                              {0, never, 0, time.Second},
		"a signal":                                       {0, 0, never, time.Second},
		"a signal, and a release request after the exit": {0, 0, 2 * time.Second, time.Second},
		"a signal to the command":                        {0, never, never, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hold, cmd := newFakeHold(15*time.Second), newFakeProcess(false)
				if tt.exit != never {
					cmd.left = leftIgnore
				}
				s, _, signals := newTestSupervisor(hold, cmd)
				revoked := make(chan zklock.ReleaseRequest, 1)
				s.maxHold.limit, s.revoked, s.onRevoke.term = tt.limit, revoked, true
				for _, timer := range []*time.Timer{
					time.AfterFunc(tt.signal, func() { signals <- syscall.SIGTERM }),
					time.AfterFunc(tt.request, func() { revoked <- zklock.ReleaseRequest{} }),
					time.AfterFunc(tt.exit, func() { cmd.exited <- process.Exit{Code: -1, Signal: int(syscall.SIGTERM)} }),
				} {
					defer timer.Stop()
				}
				s.run()
				if want := "KILL@" + cmd.until.String(); !slices.Contains(cmd.log, want) {
					t.Errorf("the command got %q; TERM was allowed until %v, want until KILL", cmd.log, cmd.until)
				}
			})
		})
	}
}

// TestHookOfLossRunsOnce checks that the hook runs at TERM, or at KILL if there was no TERM.
func TestHookOfLossRunsOnce(t *testing.T) {
	for _, tt := range []struct {
		name string
		lose bool
		want string
	}{
		{"no answer", false, "the lock is about to be lost (no answer from the servers) after [TERM@12.5s]"},
		{"lost", true, "the lock is lost (deleted) after [KILL@0s]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hold, cmd := newFakeHold(15*time.Second), newFakeProcess(true)
				s, _, _ := newTestSupervisor(hold, cmd)
				hook := &fakeHook{cmd: cmd}
				s.hook = hook
				if tt.lose {
					hold.lose(errors.New("deleted"))
				}
				s.run()
				if !slices.Equal(hook.starts, []string{tt.want}) {
					t.Errorf("the hook started %q, want %q", hook.starts, tt.want)
				}
			})
		})
	}
}

func TestMaxHoldEndsCommand(t *testing.T) {
	for _, tt := range []struct {
		name  string
		obeys bool
		dies  time.Duration // when the servers stop to answer; 0 means never
		exits time.Duration // when the command exits by itself; 0 means never
		most  time.Duration // --max-hold; 0 means a minute
		log   []string
		limit bool // the command ended because of the limit
		ended bool // or because of the lock
	}{
		{name: "a command that obeys", obeys: true, log: []string{"TERM@1m0s"}, limit: true},
		{name: "a command that ignores TERM", log: []string{"TERM@1m0s", "KILL@1m2s"}, limit: true},
		{name: "a command that ends earlier", exits: 59 * time.Second},
		{name: "a limit that the clock cannot reach", exits: 59 * time.Second, most: forever},
		{name: "a lock that is lost earlier", dies: 40 * time.Second, log: []string{"TERM@52.5s", "KILL@54.5s"}, ended: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hold, cmd := newFakeHold(15*time.Second), newFakeProcess(tt.obeys)
				s, _, _ := newTestSupervisor(hold, cmd)
				s.maxHold.limit = cmp.Or(tt.most, time.Minute)
				since := s.now
				s.now = func() time.Duration { return time.Hour + since() } // the machine has run for an hour
				stop := make(chan struct{})
				go func() {
					for {
						select {
						case <-time.After(time.Second):
						case <-stop:
							return
						}
						if now := time.Since(cmd.began); tt.dies == 0 || now <= tt.dies {
							hold.extend(15 * time.Second)
						}
						if tt.exits != 0 && time.Since(cmd.began) == tt.exits {
							cmd.exited <- process.Exit{}
						}
					}
				}()
				_, ended := s.run()
				close(stop)
				if !slices.Equal(cmd.log, tt.log) || (s.maxHold.phase != Wait) != tt.limit || s.stopping != tt.limit || ended != tt.ended {
					t.Errorf("got %q, phase %v, stopping %v, lock %v; want %+v", cmd.log, s.maxHold.phase, s.stopping, ended, tt)
				}
			})
		})
	}
}

func TestEndedWatchdogIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold, cmd := newFakeHold(15*time.Second), newFakeProcess(true)
		s, first, _ := newTestSupervisor(hold, cmd)
		second := newFakeWatchdog()
		calls := 0
		s.respawn.start = func() (watchdog, error) {
			calls++
			return second, nil
		}
		go func() {
			close(first.died)
			time.Sleep(time.Second)
			cmd.exited <- process.Exit{}
		}()
		s.run()
		if second.group != 77 || second.until != first.until || !first.closed {
			t.Errorf("the second watchdog knows group %d until %v, the first until %v", second.group, second.until, first.until)
		}
		if calls != 1 || s.watchdog != watchdog(second) {
			t.Errorf("%d watchdogs were started, want 1", calls)
		}
	})
}

// TestWatchdogsThatEndAtOnce checks that the first one is replaced at once, and the others at
// growing intervals. The command continues, and gets its signals in time.
func TestWatchdogsThatEndAtOnce(t *testing.T) {
	for name, start := range map[string]func() (watchdog, error){
		"dead": func() (watchdog, error) {
			g := newFakeWatchdog()
			close(g.died)
			return g, nil
		},
		"broken": func() (watchdog, error) {
			g := newFakeWatchdog()
			g.broken.Store(true)
			return g, nil
		},
		"none": func() (watchdog, error) { return nil, errors.New("no more processes") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hold, cmd := newFakeHold(15*time.Second), newFakeProcess(false)
				s, first, _ := newTestSupervisor(hold, cmd)
				began := time.Now()
				var starts []time.Duration
				s.respawn.start = func() (watchdog, error) {
					starts = append(starts, time.Since(began))
					return start()
				}
				close(first.died)
				ended := false
				printed := clitest.Stderr(t, func() { _, ended = s.run() })
				// It says so once, as soon as the command has no watchdog for some time.
				if n := strings.Count(printed, "; until another one runs, the command can continue without its lock"); n != 1 {
					t.Errorf("printed %d warnings: %s", n, printed)
				}
				ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
				// Pauses of 0.1, 0.2, 0.4, ... seconds.
				want := []time.Duration{0, ms(100), ms(300), ms(700), ms(1500), ms(3100), ms(6300), ms(12700)}
				if !slices.Equal(starts, want) {
					t.Errorf("started at %v, want %v", starts, want)
				}
				if log := []string{"TERM@12.5s", "KILL@14.5s"}; !ended || !slices.Equal(cmd.log, log) {
					t.Errorf("the command got %q, want %q", cmd.log, log)
				}
			})
		})
	}
}

// TestStoppedWatchdogIsReplaced: a watchdog that was stopped reads no deadline. When it
// continues, it would use an old one.
func TestStoppedWatchdogIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold, cmd := newFakeHold(15*time.Second), newFakeProcess(true)
		s, first, _ := newTestSupervisor(hold, cmd)
		second := newFakeWatchdog()
		s.respawn.start = func() (watchdog, error) { return second, nil }
		go func() {
			time.Sleep(5 * time.Second)
			first.broken.Store(true)
			hold.extend(15 * time.Second)
			time.Sleep(5 * time.Second)
			cmd.exited <- process.Exit{}
		}()
		s.run()
		if !first.killed || !first.closed || second.until < 19*time.Second || second.group != 77 {
			t.Errorf("the first was killed: %v; the second knows group %d until %v", first.killed, second.group, second.until)
		}
	})
}

func TestRespawnPauseIsResetAfterLongRun(t *testing.T) {
	var r respawn
	now := time.Hour
	var pauses []time.Duration
	for _, lived := range []time.Duration{0, 0, 0, 0, respawnReset, 0, 0} {
		r.started(now)
		now += lived
		r.died(now, nil)
		pauses = append(pauses, r.at-now)
		now = r.at
	}
	for range 20 {
		r.started(now)
		r.died(now, nil)
	}
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	want := []time.Duration{0, ms(100), ms(200), ms(400), 0, ms(100), ms(200)}
	if !slices.Equal(pauses, want) || r.at-now != respawnMost {
		t.Errorf("pauses %v, want %v; at most %v, want %v", pauses, want, r.at-now, respawnMost)
	}
}

// TestKilledByTheWatchdog: this process was stopped when its command was due, and the watchdog
// killed the command. The exit counts as an end because of the lock, whatever the hold is since
// then.
func TestKilledByTheWatchdog(t *testing.T) {
	for name, test := range map[string]struct {
		sleep  time.Duration // the time until this process runs again
		extend bool          // the servers answer before the next check
		ended  bool
	}{
		"killed by another process":                {time.Second, false, false},
		"after it was due":                         {14800 * time.Millisecond, false, true},
		"after it was due, and the hold continues": {14800 * time.Millisecond, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hold, cmd := newFakeHold(15*time.Second), newFakeProcess(true)
				s, _, _ := newTestSupervisor(hold, cmd)
				stopped := false
				clock := s.now
				// The supervisor checks when the process runs again, not when the check was due.
				s.now = func() time.Duration {
					if now := clock(); now > 0 && !stopped {
						stopped = true
						time.Sleep(test.sleep - now)
						if test.extend {
							hold.extend(15 * time.Second)
						}
						cmd.exited <- process.Exit{Code: -1, Signal: int(syscall.SIGKILL)}
					}
					return clock()
				}
				s.watchdogUntil = s.now() + 14750*time.Millisecond
				_, ended := s.run()
				if ended != test.ended {
					t.Errorf("ended because of the lock: %v, want %v", ended, test.ended)
				}
			})
		})
	}
}

// TestLostBeforeTheCommandBegan: the last check before the start of the command reports the loss.
func TestLostBeforeTheCommandBegan(t *testing.T) {
	lost := fmt.Errorf("hold x: %w: no answer", zklock.ErrLost)
	r := &runner{status: &statusLine{}}
	err := r.notStarted(lost, lost)
	r.status.finish(err)
	if cli.ExitCode(err) != cli.ExitLost || r.status.Outcome != outcomeLost || r.status.Exit != cli.ExitLost || err.Error() != lost.Error() {
		t.Errorf("%v: %+v", err, r.status)
	}
	r = &runner{status: &statusLine{}}
	err = r.notStarted(process.ErrNotExecutable, nil)
	r.status.finish(err)
	if cli.ExitCode(err) != cli.ExitNotExecutable || r.status.Outcome != outcomeNotExecutable {
		t.Errorf("%v: %+v", err, r.status)
	}
}

// TestSlowExecIsSupervised: a file system delays the exec of the command for longer than the first
// deadline. The watchdog gets the later deadlines. A command that has not begun when --kill-after
// has passed since a TERM gets KILL.
func TestSlowExecIsSupervised(t *testing.T) {
	cannot := fmt.Errorf("x: %w", process.ErrNotExecutable)
	for name, test := range map[string]struct {
		term, exits bool  // TERM arrives before the exec ends; the end of the process is seen first
		result      error // of the exec
		notBegun    error
		log         []string
		began       bool
	}{
		"it begins":                        {began: true},
		"it fails":                         {result: cannot, notBegun: cannot},
		"it fails, and the end comes soon": {result: cannot, notBegun: cannot, exits: true},
		"it begins and ends at once":       {exits: true, began: true},
		"TERM":                             {term: true, log: []string{"terminated@1m0s", "KILL@1m2s"}, began: true},
		"TERM before it is admitted":       {term: true, log: []string{"terminated@1m0s", "KILL@1m2s"}, result: process.ErrEnded},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hold, cmd := newFakeHold(15*time.Second), newFakeProcess(false)
				s, guard, signals := newTestSupervisor(hold, cmd)
				begins, began := make(chan error, 1), false
				s.begins, s.onBegin = begins, func() { began = true }
				go func() { // ends with the command
					for range 6 {
						time.Sleep(10 * time.Second)
						hold.extend(15 * time.Second)
					}
					if test.term {
						signals <- syscall.SIGTERM
						time.Sleep(3 * time.Second)
						begins <- test.result // a signal has ended it
						return
					}
					if test.exits {
						cmd.exited <- process.Exit{Code: 3}
						time.Sleep(time.Second)
						begins <- test.result
						return
					}
					begins <- test.result
					time.Sleep(time.Second)
					cmd.exited <- process.Exit{Code: 3}
				}()
				_, ended := s.run()
				if ended || began != test.began || s.notBegun != test.notBegun || !slices.Equal(cmd.log, test.log) {
					t.Errorf("ended %v, began %v, %v, the command got %q; want %+v", ended, began, s.notBegun, cmd.log, test)
				}
				if guard.until < 60*time.Second {
					t.Errorf("the watchdog kills at %v", guard.until)
				}
			})
		})
	}
}

// TestNoMessageOfHoldAfterTERM checks that messages that the lock is still held are printed only
// before TERM.
func TestNoMessageOfHoldAfterTERM(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold, cmd := newFakeHold(15*time.Second), newFakeProcess(false)
		s, _, _ := newTestSupervisor(hold, cmd)
		events := make(chan zklock.Event, 4)
		s.events = events
		go func() {
			for _, at := range []struct {
				after time.Duration
				err   error
			}{{time.Second, errors.New("late")}, {time.Second, nil}, {10500 * time.Millisecond, errors.New("late")}, {time.Second, nil}} {
				time.Sleep(at.after) // TERM is due after 12.5 s, and KILL after 14.5 s
				events <- zklock.Event{Err: at.err}
			}
		}()
		got := clitest.Stderr(t, func() { s.run() })
		want := "zklock: reconnecting: no answer from the servers; the lock is still held, safe for 11s\n" +
			"zklock: the servers answer again; the lock was held throughout\n" +
			"zklock: the lock is about to be lost (no answer from the servers): ending the command\n"
		if got != want {
			t.Errorf("%s\nwant\n%s", got, want)
		}
	})
}

// A release request ends the command only with --on-revoke term.
func TestReleaseRequestEndsCommandOnlyWithTerm(t *testing.T) {
	for _, term := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			hold, cmd := newFakeHold(15*time.Second), newFakeProcess(true)
			s, _, _ := newTestSupervisor(hold, cmd)
			revoked := make(chan zklock.ReleaseRequest, 1)
			s.revoked, s.onRevoke, s.title = revoked, onRevoke{term}, "demo"
			go func() {
				time.Sleep(time.Second)
				revoked <- zklock.ReleaseRequest{By: zklock.Owner{Host: "web-3", PID: 4, User: "ann"}, Reason: "a\nb"}
				if !term {
					time.Sleep(time.Second)
					cmd.exited <- process.Exit{Code: 3}
				}
			}()
			ended := false
			printed := clitest.Stderr(t, func() { _, ended = s.run() })
			want, notice := []string(nil), "zklock: ann@web-3:4 asks to release demo (a; b); the command continues (--on-revoke term releases it)\n"
			if term {
				want, notice = []string{"TERM@1s"}, "zklock: ann@web-3:4 asks to release demo (a; b): ending the command\n"
			}
			if ended || !s.wasRevoked || s.stopping != term || !slices.Equal(cmd.log, want) || printed != notice {
				t.Errorf("term %v: ended %v, revoked %v, stopping %v, command got %q, printed %q", term, ended, s.wasRevoked, s.stopping, cmd.log, printed)
			}
			synctest.Wait()
		})
	}
}
