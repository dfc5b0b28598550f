package process

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/zklock/zklock/internal/legible"
)

// hook*.go run the hook of --on-lost. The process that runs it starts before the command
// and waits. So starting the hook costs one write to a pipe, which delays neither TERM nor
// KILL, and the hook does not count as a descendant of the command. It counts as a descendant of
// the command of an outer wrapper.

// HookArgument is the hidden first argument of the process that runs a hook.
const HookArgument = "__hook"

// HookTime is how long a hook of zklock run may run.
const HookTime = 10 * time.Second

// hookExitTime limits how long Close waits for the process beyond the hook's limit.
const hookExitTime = 2 * time.Second

// hookReason is the environment variable that tells a hook why the lock is lost.
const hookReason = "ZKLOCK_LOST_REASON"

// Hook is a shell command that has not started yet. Its methods belong to one
// goroutine. A nil *Hook does nothing.
type Hook struct {
	pipe    io.WriteCloser
	proc    *os.Process
	limit   time.Duration
	started bool
	ended   chan struct{}
}

// NewHook starts the process that waits to run command with the environment env, for
// limit at most. exe is this program. A goroutine waits for that process and ends with it.
func NewHook(exe, command string, env []string, limit time.Duration) (*Hook, error) {
	cmd := exec.Command(exe)
	cmd.Args = []string{"zklock", HookArgument, limit.String(), command}
	cmd.Env = env
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	cmd.SysProcAttr = hookAttributes()
	pipe, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("start the process for --on-lost: %w", err)
	}
	h := &Hook{pipe: pipe, proc: cmd.Process, limit: limit, ended: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // the process reports its own errors
		close(h.ended)
	}()
	return h, nil
}

// maxReason bounds the reason that a hook gets, in bytes. A pipe takes that many at once.
const maxReason = 2000

// Start runs the hook, once, and returns at once. The hook gets the reason as one line,
// with escapes for what a terminal or a log could obey, because an error can quote a server.
func (h *Hook) Start(reason string) error {
	if h == nil || h.started {
		return nil
	}
	h.started = true
	reason = strings.ReplaceAll(reason[:min(len(reason), maxReason)], "\n", " ")
	_, err := io.WriteString(h.pipe, legible.Text(reason)+"\n")
	return err
}

// Close ends a hook that has not started. It waits until a hook that has started ends,
// for its limit and hookExitTime at most.
func (h *Hook) Close() {
	if h == nil {
		return
	}
	_ = h.pipe.Close() // the process may be gone
	select {
	case <-h.ended:
	case <-time.After(h.limit + hookExitTime):
		_ = h.proc.Kill() // it may have ended meanwhile
	}
}

// HookMain is the process that runs a hook: args has the limit and the shell command. It
// reads the reason from its standard input. If there is none, the lock was not lost.
func HookMain(args []string) int {
	if len(args) != 2 {
		return 1
	}
	limit, err := time.ParseDuration(args[0])
	if err != nil {
		return 1
	}
	CloseInherited() // a reader of these files must not wait for this process
	reason, err := bufio.NewReader(os.Stdin).ReadString('\n')
	if err != nil {
		return 0
	}
	cmd := hookShell(args[1])
	cmd.Env = append(os.Environ(), hookReason+"="+strings.TrimSuffix(reason, "\n"))
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := waitHook(cmd, limit); err != nil {
		fmt.Fprintf(os.Stderr, "zklock: the command of --on-lost failed: %v\n", err)
	}
	killHook(cmd)
	return 0
}

// waitHook runs the command of a hook and waits for its end, for limit at most.
func waitHook(cmd *exec.Cmd, limit time.Duration) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case err := <-ended:
		return err
	case <-timer.C:
		return fmt.Errorf("killed because it ran for more than %v", limit)
	}
}
