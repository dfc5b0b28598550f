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

// ErrViolation means that two clients held a lock that only one may hold. The other results
// of such a contender are meaningless.
var ErrViolation = errors.New("contender: mutual exclusion was violated")

// A Process is a running contender. It must be used by one goroutine only.
type Process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader

	silent bool          // the process ended, or a pipe broke
	limit  time.Duration // for an answer, in addition to the time of the work
}

// answerTime is the limit for an answer. The slowest work, the drain of a long queue, takes
// less than a minute.
const answerTime = 5 * time.Minute

// Start starts a contender. It ends with this program, because its input ends then.
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
	return &Process{cmd: cmd, in: in, out: bufio.NewReader(out), limit: answerTime}, nil
}

// PID returns the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Alive reports whether the process still answers, even if only with errors.
func (p *Process) Alive() bool { return !p.silent }

// Measured is a result and its cost to the process.
type Measured struct {
	lockwork.Result
	// CPU is the processor time in steps of 10 ms, including setup and cleanup.
	CPU time.Duration
}

// Do makes the contender do a work. The error wraps lockwork.ErrUnsupported or
// [ErrViolation], or has the text of the contender's error. Do kills a contender that does
// not answer within minutes.
func (p *Process) Do(servers string, w lockwork.Work) (Measured, error) {
	before, err := proc.CPUTime(p.PID())
	if err != nil {
		return Measured{}, err
	}
	if _, err := fmt.Fprintf(p.in, "%s %s\n", servers, w); err != nil {
		p.silent = true
		return Measured{}, fmt.Errorf("contender: %w", err)
	}
	limit := time.AfterFunc(w.Time+p.limit, p.kill)
	defer limit.Stop()
	text, err := p.out.ReadString('\n')
	if err != nil {
		p.silent = true
		return Measured{}, fmt.Errorf("contender: the process ended without an answer to %v: %w", w, err)
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

// Stop ends the contender, by SIGKILL if it does not exit within a few seconds.
func (p *Process) Stop() {
	_ = p.in.Close()
	const patience = 10 * time.Second
	t := time.AfterFunc(patience, p.kill)
	defer t.Stop()
	_, _ = io.Copy(io.Discard, p.out)
	_ = p.cmd.Wait()
}

// kill ends the contender and its children. The process has not been waited for, so its id
// has not been reused.
func (p *Process) kill() { _ = syscall.Kill(-p.PID(), syscall.SIGKILL) }
