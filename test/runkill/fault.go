package runkill

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// Exit codes of the old wrapper.
const (
	exitLost   = 120
	exitKilled = 128 + int(syscall.SIGKILL)
	exitTerm   = 128 + int(syscall.SIGTERM)
)

// Fault is what happens to the holder of a trial.
type Fault struct {
	Name string
	// Strike brings it about; Heal, where it is set, ends it, which is after the
	// new command has begun.
	Strike, Heal func(context.Context, *Trial) error
	// Exit is the old wrapper's exit code.
	Exit int
	// Flags are more flags of the old wrapper.
	Flags []string
	// Asks says that the command is asked to end: its first process has to obey.
	Asks bool
	// Silent says that the wrapper runs on and hears nothing from its servers: it
	// has to say so, and to ask the command to end before it kills it.
	Silent bool
	// Taken says that somebody takes the lock away: its holder hears of it, and the
	// next one too, so both ask for a lock delay.
	Taken bool
	// Remembers says that the watchdog has to have seen who is outside of the
	// command's group, since it cannot find them afterwards.
	Remembers bool
}

// Faults are those of a single holder. The order is that of the trials.
func Faults() []*Fault {
	return []*Fault{
		{Name: "wrapper killed", Exit: exitKilled, Strike: killWrapper, Remembers: true},
		{Name: "all called zklock killed", Exit: exitKilled, Strike: killByName, Remembers: true},
		{Name: "all with zklock in their command line killed", Exit: exitKilled, Strike: killByCommandLine, Remembers: true},
		{Name: "TERM to the wrapper", Exit: exitTerm, Strike: termWrapper, Asks: true},
		{Name: "lock asked for", Exit: exitTerm, Strike: revoke, Flags: []string{"--on-revoke", "term"}, Asks: true},
		{Name: "command's first process killed", Exit: exitKilled, Strike: killLeader},
		{Name: "wrapper stopped", Exit: exitLost, Strike: stopWrapper, Heal: contWrapper},
		{Name: "whole job stopped", Exit: exitLost, Strike: stopJob, Heal: contJob},
		{Name: "watchdog killed, then wrapper stopped", Exit: exitLost, Strike: killWatchdogStopWrapper, Heal: contWrapper},
		{Name: "watchdog stopped, then partition", Exit: exitLost, Strike: stopWatchdogPartition, Heal: contWatchdog, Silent: true},
		{Name: "command stopped, then partition", Exit: exitLost, Strike: stopCommandPartition, Heal: heal, Silent: true},
		{Name: "partition", Exit: exitLost, Strike: partition(), Heal: heal, Silent: true},
		{Name: "partition to the server only", Exit: exitLost, Strike: partition(zktest.ToServer), Heal: heal, Silent: true},
		{Name: "partition to the client only", Exit: exitLost, Strike: partition(zktest.ToClient), Heal: heal, Silent: true},
		{Name: "connection refused", Exit: exitLost, Strike: refuse, Heal: heal, Silent: true},
		{Name: "session closed by an operator", Exit: exitLost, Strike: closeSession, Taken: true},
		{Name: "lock znode deleted by an operator", Exit: exitLost, Strike: deleteNode, Taken: true},
	}
}

// ServerFault is what happens to the server of several trials at once, for so
// long that their sessions end.
type ServerFault struct {
	Name         string
	Strike, Heal func(context.Context, *Host) error
}

// ServerFaults are those of a server.
func ServerFaults() []*ServerFault {
	return []*ServerFault{
		{Name: "server killed, later restarted", Strike: func(_ context.Context, h *Host) error {
			h.Kill()
			return nil
		}, Heal: func(ctx context.Context, h *Host) error { return h.Restart(ctx) }},
		{Name: "server stopped, later continued",
			Strike: func(_ context.Context, h *Host) error { return h.Stop() },
			Heal:   func(_ context.Context, h *Host) error { return h.Cont() }},
	}
}

// errPassed says that the old wrapper has lost its lock before the fault could be
// brought about.
var errPassed = errors.New("runkill: the lock has passed on by itself")

// watchdogNow is the process id of the old wrapper's watchdog. It has none only
// once its command has ended.
func (t *Trial) watchdogNow() (int, error) {
	if n := watchdogOf(t.old.proc.Pid()); n != 0 {
		return n, nil
	}
	return 0, errPassed
}

func killWrapper(_ context.Context, t *Trial) error {
	return signal(syscall.SIGKILL, t.old.proc.Pid())
}

// killByName is "killall -9 zklock", among this trial's processes.
func killByName(_ context.Context, t *Trial) error {
	return t.killWhere("comm", func(name []byte) bool { return string(name) == "zklock\n" })
}

// killByCommandLine is "pkill -9 -f zklock", among this trial's processes.
func killByCommandLine(_ context.Context, t *Trial) error {
	return t.killWhere("cmdline", func(line []byte) bool { return bytes.Contains(line, []byte("zklock")) })
}

// killWhere kills what guards the old command, the watchdog first, if a file of the
// process is so.
func (t *Trial) killWhere(file string, is func([]byte) bool) error {
	watchdog, err := t.watchdogNow()
	if err != nil {
		return err
	}
	for _, pid := range []int{watchdog, t.old.proc.Pid()} {
		text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/" + file)
		if err != nil {
			return errPassed
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

func termWrapper(_ context.Context, t *Trial) error {
	return signal(syscall.SIGTERM, t.old.proc.Pid())
}

// revoke asks for the lock.
func revoke(ctx context.Context, t *Trial) error {
	_, err := t.host.locks.Mutex(fmt.Sprintf("trial-%d", t.Number)).Revoke(ctx)
	return err
}

// killLeader kills the command's first process, as the kernel does when memory is
// short, and none of its children.
func killLeader(_ context.Context, t *Trial) error {
	return signal(syscall.SIGKILL, t.record.Leader())
}

func stopWrapper(_ context.Context, t *Trial) error {
	return signal(syscall.SIGSTOP, t.old.proc.Pid())
}

func contWrapper(_ context.Context, t *Trial) error {
	return signal(syscall.SIGCONT, t.old.proc.Pid())
}

// job is the wrapper's process group and the command's.
func (t *Trial) job() []int { return []int{-t.old.proc.Pid(), -t.record.Leader()} }

// stopJob stops all but the watchdog, which is in a session of its own.
func stopJob(_ context.Context, t *Trial) error { return signal(syscall.SIGSTOP, t.job()...) }
func contJob(_ context.Context, t *Trial) error { return signal(syscall.SIGCONT, t.job()...) }

// killWatchdogStopWrapper stops the wrapper once it has another watchdog.
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
	// The new one is told right after its start.
	rest(ctx, t.Timeout/4)
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

func partition(ways ...zktest.Direction) func(context.Context, *Trial) error {
	return func(_ context.Context, t *Trial) error {
		t.proxy.Partition(ways...)
		return nil
	}
}

func heal(_ context.Context, t *Trial) error {
	t.proxy.Refuse(false)
	t.proxy.Heal()
	return nil
}

func refuse(_ context.Context, t *Trial) error {
	t.proxy.Refuse(true)
	t.proxy.CutConnections()
	return nil
}

func closeSession(_ context.Context, t *Trial) error { return t.proxy.ExpireSession(t.holder.Session) }

func deleteNode(ctx context.Context, t *Trial) error {
	err := t.host.zk.Delete(ctx, t.holder.Node, -1)
	if errors.Is(err, zk.ErrNoNode) {
		return errPassed
	}
	return err
}

// poll waits until something is so.
func poll(ctx context.Context, is func() bool) error {
	for !is() {
		if !rest(ctx, 10*time.Millisecond) {
			return ctx.Err()
		}
	}
	return nil
}

// rest waits, and reports whether ctx goes on.
func rest(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
