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
	// ErrPeer says that a client failed at a command, or ended; its text has
	// what the client said.
	ErrPeer = errors.New("harness: the client failed")
	// ErrPeerTimeout says that a client did not get a lock in the time given.
	ErrPeerTimeout = errors.New("harness: the client did not get the lock in time")
)

// PeerSessionTimeout is what the clients ask for: their sessions must live through a
// machine that stands still for a while.
const PeerSessionTimeout = 30 * time.Second

// maxAnswer bounds a line that a client says.
const maxAnswer = 1 << 20

// Peer is a running client with a session of its own. It is for one goroutine
// at a time, as it obeys one command after the other.
type Peer struct {
	Name string // "kazoo" or "curator"

	proc       *Process
	stdin      io.WriteCloser
	answers    chan Answer // closed at the end of the client's output
	complaints *bytes.Buffer
}

// Answer is what a client says to a command.
type Answer struct {
	OK    bool     `json:"ok"`
	Error string   `json:"error"` // if not OK
	Node  string   `json:"node"`  // the path of the lock's node, after an acquire
	Lines []string `json:"lines"` // the participants of an election
	// Timeouts is how often the client did not get a lock in time while it contended.
	Timeouts int `json:"timeouts"`
}

// StartPeer starts cmd, which speaks the peers' protocol, and kills it in the test's
// cleanup.
func StartPeer(tb testing.TB, name string, cmd *exec.Cmd) *Peer {
	tb.Helper()
	p := &Peer{Name: name, answers: make(chan Answer, 1), complaints: &bytes.Buffer{}}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	// Not StdoutPipe, which the child's end would close before all was read.
	output, stdout := io.Pipe()
	cmd.Stdout, cmd.Stderr = stdout, p.complaints
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

// read hands on the client's answers until its output ends. There is one answer
// to a command, so that the channel's one place is free for it; a client that
// says more is broken, and what it says after its end is dropped.
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

// Do gives the client a command and waits for its answer. It fails with
// [ErrPeer] unless the answer is OK. After ctx ends before the answer the peer
// is killed, for what it would answer next is unclear.
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
	err := p.proc.Wait() // orders the read of complaints
	return fmt.Errorf("%w: %s ended at %s: %v: %s", ErrPeer, p.Name, words[0], err, p.complaints.Bytes())
}

// Acquire makes the client take a lock of the kind at path within the time, and
// returns the path of its node; [ErrPeerTimeout] if it could not. The kinds are
// listed with each client: in java/Recipes.java, python/kazoo_peer.py and
// [Zklock]. All have none, which guards nothing.
func (p *Peer) Acquire(ctx context.Context, kind, path string, within time.Duration) (string, error) {
	a, err := p.Do(ctx, "acquire", kind, path, fmt.Sprint(within.Milliseconds()))
	return a.Node, err
}

// Release makes the client give up what it has acquired last.
func (p *Peer) Release(ctx context.Context) error {
	_, err := p.Do(ctx, "release")
	return err
}

// Kill ends the client by SIGKILL: its session stays until it expires.
func (p *Peer) Kill() { p.proc.Kill() }

// Pid is the client's process id, for SIGSTOP and the like.
func (p *Peer) Pid() int { return p.proc.Pid() }
