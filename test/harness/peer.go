package harness

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"
)

var (
	// ErrPeer reports that a client's command failed, or that the client ended. Its text
	// contains the client's error.
	ErrPeer = errors.New("harness: the client failed")
	// ErrPeerTimeout reports that a client did not get a lock in time.
	ErrPeerTimeout = errors.New("harness: the client did not get the lock in time")
)

// PeerSessionTimeout is the session timeout of the clients. Their sessions must survive a stall
// of the machine.
const PeerSessionTimeout = 30 * time.Second

// maxAnswer limits the length of an answer.
const maxAnswer = 1 << 20

// Peer is a client in a child process. It runs one command at a time, so it is for one
// goroutine at a time.
type Peer struct {
	Name string // "kazoo" or "curator"

	proc    *Process
	stdin   io.WriteCloser
	answers chan Answer // closed at the end of the client's output
	stderr  *bytes.Buffer
}

// Answer is a client's answer to a command.
type Answer struct {
	OK    bool     `json:"ok"`
	Error string   `json:"error"` // if not OK
	Node  string   `json:"node"`  // the path of the lock's node, after an acquire
	Lines []string `json:"lines"` // the participants of an election
	// Timeouts is the number of timeouts of a client that contends.
	Timeouts int `json:"timeouts"`
}

// StartPeer starts cmd, which has the protocol of java/CuratorPeer.java, and kills it in the
// test's cleanup.
func StartPeer(tb testing.TB, name string, cmd *exec.Cmd) *Peer {
	tb.Helper()
	p := &Peer{Name: name, answers: make(chan Answer, 1), stderr: &bytes.Buffer{}}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	// StdoutPipe would be closed at the child's end before the test has read all output.
	output, stdout := io.Pipe()
	cmd.Stdout, cmd.Stderr = stdout, p.stderr
	proc, err := Start(cmd)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(proc.Kill)
	p.proc, p.stdin = proc, stdin
	// Ends with the child, and ends the goroutine below.
	go func() {
		<-proc.Done()
		_ = stdout.Close()
	}()
	go p.read(output)
	return p
}

// read sends the client's answers to the channel until the output ends. The channel has room
// for one answer, because each command has one.
func (p *Peer) read(output io.Reader) {
	defer close(p.answers)
	lines := bufio.NewScanner(output)
	lines.Buffer(nil, maxAnswer)
	for lines.Scan() {
		var a Answer
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			a = Answer{Error: fmt.Sprintf("not an answer: %q", lines.Text())}
		}
		select {
		case p.answers <- a:
		case <-p.proc.Done():
		}
	}
}

// Do sends the client a command and waits for its answer. It returns [ErrPeer] unless the answer
// is OK. If ctx ends before the answer, Do kills the client, because the next answer would
// belong to this command.
func (p *Peer) Do(ctx context.Context, words ...string) (Answer, error) {
	defer context.AfterFunc(ctx, p.proc.Kill)()
	if _, err := io.WriteString(p.stdin, strings.Join(words, " ")+"\n"); err != nil {
		return Answer{}, p.ended(words)
	}
	a, ok := <-p.answers
	switch {
	case !ok && ctx.Err() != nil:
		return Answer{}, fmt.Errorf("harness: %s: %s: %w", p.Name, words[0], ctx.Err())
	case !ok:
		return Answer{}, p.ended(words)
	case a.OK:
		return a, nil
	case a.Error == "timeout":
		return a, ErrPeerTimeout
	default:
		return a, fmt.Errorf("%w: %s: %s: %s", ErrPeer, p.Name, strings.Join(words, " "), a.Error)
	}
}

func (p *Peer) ended(words []string) error {
	err := p.proc.Wait() // before reading stderr
	return fmt.Errorf("%w: %s ended at %s: %v: %s", ErrPeer, p.Name, words[0], err, p.stderr.Bytes())
}

// Acquire makes the client acquire a lock of the kind at path within the time, and returns the
// path of its node, or [ErrPeerTimeout]. java/Recipes.java and python/kazoo_peer.py list the
// kinds.
func (p *Peer) Acquire(ctx context.Context, kind, path string, within time.Duration) (string, error) {
	a, err := p.Do(ctx, "acquire", kind, path, fmt.Sprint(within.Milliseconds()))
	return a.Node, err
}

// Release makes the client release the lock that it acquired last.
func (p *Peer) Release(ctx context.Context) error {
	_, err := p.Do(ctx, "release")
	return err
}

// Kill ends the client by SIGKILL. Its session lasts until it expires.
func (p *Peer) Kill() { p.proc.Kill() }

// Pid returns the client's process id.
func (p *Peer) Pid() int { return p.proc.Pid() }
