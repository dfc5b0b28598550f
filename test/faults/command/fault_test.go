package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/zklock/zklock/test/harness"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// Exit codes of the old wrapper.
const (
	exitLost   = 120
	exitKilled = 128 + int(syscall.SIGKILL)
	exitTerm   = 128 + int(syscall.SIGTERM)
)

// Fault is a fault of the holder of a trial.
type Fault struct {
	Name string
	// Inject begins the fault. Heal, if it is not nil, ends it after the new command has
	// started.
	Inject, Heal func(context.Context, *Trial) error
	// Exit is the old wrapper's exit code.
	Exit int
	// Flags are further flags of the old wrapper.
	Flags []string
	// SendsTerm is set if the command gets TERM. Then its first process must not ignore TERM.
	SendsTerm bool
	// Silent is set if the wrapper gets no answer from its servers. Then it must report that,
	// and send TERM to the command before KILL.
	Silent bool
	// BreaksLock is set if an operator breaks the lock. The holder and the next waiter learn of
	// that at the same time, so both use a lock delay.
	BreaksLock bool
	// NeedsScan is set if the watchdog cannot find processes outside the command's group after
	// the fault, so it must have found them before.
	NeedsScan bool
}

// Faults returns the faults of a single holder, in the order of the trials.
func Faults() []*Fault {
	return []*Fault{
		{Name: "wrapper killed", Exit: exitKilled, Inject: toWrapper(syscall.SIGKILL), NeedsScan: true},
		{Name: "all processes named zklock killed", Exit: exitKilled, Inject: killByName, NeedsScan: true},
		{Name: "all processes with zklock in the command line killed", Exit: exitKilled, Inject: killByCommandLine, NeedsScan: true},
		{Name: "TERM to the wrapper", Exit: exitTerm, Inject: toWrapper(syscall.SIGTERM), SendsTerm: true},
		{Name: "release requested", Exit: exitTerm, Inject: revoke, Flags: []string{"--on-revoke", "term"}, SendsTerm: true},
		{Name: "command's first process killed", Exit: exitKilled, Inject: killLeader},
		{Name: "wrapper stopped", Exit: exitLost, Inject: stopWrapper, Heal: contWrapper},
		{Name: "whole job stopped", Exit: exitLost, Inject: stopJob, Heal: contJob},
		{Name: "watchdog killed, then wrapper stopped", Exit: exitLost, Inject: killWatchdogStopWrapper, Heal: contWrapper},
		{Name: "watchdog stopped, then partition", Exit: exitLost, Inject: stopWatchdogPartition, Heal: contWatchdog, Silent: true},
		{Name: "command stopped, then partition", Exit: exitLost, Inject: stopCommandPartition, Heal: heal, Silent: true},
		{Name: "partition", Exit: exitLost, Inject: partition(), Heal: heal, Silent: true},
		{Name: "partition to the server only", Exit: exitLost, Inject: partition(zktest.ToServer), Heal: heal, Silent: true},
		{Name: "partition to the client only", Exit: exitLost, Inject: partition(zktest.ToClient), Heal: heal, Silent: true},
		{Name: "connection refused", Exit: exitLost, Inject: refuse, Heal: heal, Silent: true},
		{Name: "session closed by an operator", Exit: exitLost, Inject: closeSession, BreaksLock: true},
		{Name: "lock znode deleted by an operator", Exit: exitLost, Inject: deleteNode, BreaksLock: true},
	}
}

// ServerFault is a fault of the server of several trials. It lasts until their sessions have
// ended.
type ServerFault struct {
	Name         string
	Inject, Heal func(context.Context, *Host) error
}

// ServerFaults returns the faults of a server.
func ServerFaults() []*ServerFault {
	return []*ServerFault{
		{Name: "server killed, later restarted", Inject: func(_ context.Context, h *Host) error {
			h.Kill()
			return nil
		}, Heal: func(ctx context.Context, h *Host) error { return h.Restart(ctx) }},
		{Name: "server stopped, later continued",
			Inject: func(_ context.Context, h *Host) error { return h.Stop() },
			Heal:   func(_ context.Context, h *Host) error { return h.Cont() }},
	}
}

// errLostBefore reports that the old wrapper lost its lock before the fault.
var errLostBefore = errors.New("command: the lock was lost before the fault")

// toWrapper sends a signal to the old wrapper.
func toWrapper(sig syscall.Signal) func(context.Context, *Trial) error {
	return func(_ context.Context, t *Trial) error { return signal(sig, t.old.proc.Pid()) }
}

var stopWrapper, contWrapper = toWrapper(syscall.SIGSTOP), toWrapper(syscall.SIGCONT)

// watchdogNow returns the process ID of the old wrapper's watchdog. It returns errLostBefore if
// there is none, because the command has ended.
func (t *Trial) watchdogNow() (int, error) {
	if n := watchdogOf(t.old.proc.Pid()); n != 0 {
		return n, nil
	}
	return 0, errLostBefore
}

// killByName does "killall -9 zklock" for the processes of the trial.
func killByName(_ context.Context, t *Trial) error {
	return t.killWhere("comm", func(name []byte) bool { return string(name) == "zklock\n" })
}

// killByCommandLine does "pkill -9 -f zklock" for the processes of the trial.
func killByCommandLine(_ context.Context, t *Trial) error {
	return t.killWhere("cmdline", func(line []byte) bool { return bytes.Contains(line, []byte("zklock")) })
}

// killWhere kills the old watchdog and the old wrapper if a /proc file of the process matches.
func (t *Trial) killWhere(file string, is func([]byte) bool) error {
	watchdog, err := t.watchdogNow()
	if err != nil {
		return err
	}
	for _, pid := range []int{watchdog, t.old.proc.Pid()} {
		text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/" + file)
		if err != nil {
			return errLostBefore
		}
		if !is(text) {
			continue
		}
		if err := signal(syscall.SIGKILL, pid); err != nil {
			return err
		}
	}
	return nil
}

// revoke sends a release request.
func revoke(ctx context.Context, t *Trial) error {
	_, err := t.host.locks.Mutex(fmt.Sprintf("trial-%d", t.Number)).Revoke(ctx)
	return err
}

// killLeader kills the command's first process and none of its children, like the kernel's
// OOM killer.
func killLeader(_ context.Context, t *Trial) error {
	return signal(syscall.SIGKILL, t.record.Leader())
}

// job returns the process groups of the wrapper and of the command.
func (t *Trial) job() []int { return []int{-t.old.proc.Pid(), -t.record.Leader()} }

// stopJob stops all processes except the watchdog, which is in its own session.
func stopJob(_ context.Context, t *Trial) error { return signal(syscall.SIGSTOP, t.job()...) }
func contJob(_ context.Context, t *Trial) error { return signal(syscall.SIGCONT, t.job()...) }

// killWatchdog kills the watchdog, if the wrapper has one.
func killWatchdog(_ context.Context, t *Trial) error {
	if n := watchdogOf(t.old.proc.Pid()); n != 0 {
		return signal(syscall.SIGKILL, n)
	}
	return nil
}

// killWatchdogStopWrapper kills the watchdog, and stops the wrapper after it has started
// another watchdog.
func killWatchdogStopWrapper(ctx context.Context, t *Trial) error {
	first, err := t.watchdogNow()
	if err != nil {
		return err
	}
	if err := signal(syscall.SIGKILL, first); err != nil {
		return err
	}
	if err := poll(ctx, func() bool {
		n := watchdogOf(t.old.proc.Pid())
		return n != 0 && n != first || t.over()
	}); err != nil {
		return err
	}
	// Wait until the wrapper has sent the deadline to the new watchdog.
	harness.Sleep(ctx, t.Timeout/4)
	return stopWrapper(ctx, t)
}

func stopWatchdogPartition(_ context.Context, t *Trial) error {
	var err error
	if t.watchdog, err = t.watchdogNow(); err != nil {
		return err
	}
	if err := signal(syscall.SIGSTOP, t.watchdog); err != nil {
		return err
	}
	t.proxy.Partition()
	return nil
}

func contWatchdog(ctx context.Context, t *Trial) error {
	return errors.Join(signal(syscall.SIGCONT, t.watchdog), heal(ctx, t))
}

func stopCommandPartition(_ context.Context, t *Trial) error {
	if err := signal(syscall.SIGSTOP, -t.record.Leader()); err != nil {
		return err
	}
	t.proxy.Partition()
	return nil
}

// onProxy calls do with the wrapper's proxy.
func onProxy(do func(*zktest.Proxy)) func(context.Context, *Trial) error {
	return func(_ context.Context, t *Trial) error {
		do(t.proxy)
		return nil
	}
}

func partition(ways ...zktest.Direction) func(context.Context, *Trial) error {
	return onProxy(func(p *zktest.Proxy) { p.Partition(ways...) })
}

var heal = onProxy(func(p *zktest.Proxy) {
	p.Refuse(false)
	p.Heal()
})

var refuse = onProxy(func(p *zktest.Proxy) {
	p.Refuse(true)
	p.CutConnections()
})

func closeSession(_ context.Context, t *Trial) error { return t.proxy.ExpireSession(t.holder.Session) }

func deleteNode(ctx context.Context, t *Trial) error {
	err := t.host.zk.Delete(ctx, t.holder.Node, -1)
	if errors.Is(err, zk.ErrNoNode) {
		return errLostBefore
	}
	return err
}

// poll waits until a condition holds.
func poll(ctx context.Context, is func() bool) error {
	for !is() {
		if !harness.Sleep(ctx, 10*time.Millisecond) {
			return ctx.Err()
		}
	}
	return nil
}
