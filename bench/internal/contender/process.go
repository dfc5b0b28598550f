package contender

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/zklock/zklock/bench/internal/lockwork"
	"github.com/zklock/zklock/bench/internal/proc"
)

// ErrViolation says that two held what only one may hold: nothing else that was
// measured of such a contender means anything.
var ErrViolation = errors.New("contender: mutual exclusion was violated")

// A Process is a contender that runs. It is for one goroutine.
type Process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader

	silent bool // it ended, or its pipes broke
}

// Start starts a contender. It dies with this program, as its input ends then.
func Start(cmd *exec.Cmd, log io.Writer) (*Process, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	cmd.Stderr = log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("contender: start %s: %w", cmd.Path, err)
	}
	return &Process{cmd: cmd, in: in, out: bufio.NewReader(out)}, nil
}

// PID is the process's id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Alive reports whether the process still answers, if only with errors.
func (p *Process) Alive() bool { return !p.silent }

// Measured is a result, and what it cost the process.
type Measured struct {
	lockwork.Result
	// CPU is processor time, in steps of 10 ms, of setting up and ending too.
	CPU time.Duration
}

// Do has the contender do a work.
// Errors: one that wraps lockwork.ErrUnsupported, [ErrViolation], or what the
// contender says.
func (p *Process) Do(servers string, w lockwork.Work) (Measured, error) {
	before, err := proc.CPUTime(p.PID())
	if err != nil {
		return Measured{}, err
	}
	if _, err := fmt.Fprintf(p.in, "%s %s\n", servers, w); err != nil {
		p.silent = true
		return Measured{}, fmt.Errorf("contender: %w", err)
	}
	text, err := p.out.ReadString('\n')
	if err != nil {
		p.silent = true
		return Measured{}, fmt.Errorf("contender: it ended without an answer to %v: %w", w, err)
	}
	word, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	switch word {
	case "ok":
	case "unsupported":
		return Measured{}, fmt.Errorf("%w: %s", lockwork.ErrUnsupported, rest)
	default:
		return Measured{}, fmt.Errorf("contender: %v: %s", w, text)
	}
	after, err := proc.CPUTime(p.PID())
	if err != nil {
		return Measured{}, err
	}
	r, err := lockwork.ParseResult(rest)
	if err == nil && r.Violations > 0 {
		err = fmt.Errorf("%w %d times: %v", ErrViolation, r.Violations, w)
	}
	return Measured{r, after - before}, err
}

// Stop ends the contender, by force if it does not go within a few seconds.
func (p *Process) Stop() {
	_ = p.in.Close()
	const patience = 10 * time.Second
	// It has not been waited for, so the id is still its own.
	t := time.AfterFunc(patience, func() { _ = syscall.Kill(-p.PID(), syscall.SIGKILL) })
	defer t.Stop()
	_, _ = io.Copy(io.Discard, p.out)
	_ = p.cmd.Wait()
}
