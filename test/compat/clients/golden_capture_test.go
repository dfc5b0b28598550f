package clients

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock/test/harness"
)

// ErrClient reports that the Java client did not complete. Its text contains the client's output.
var ErrClient = errors.New("clients: the Java client failed")

// pingTimeout limits the wait for a ping, which the client sends within two seconds.
const pingTimeout = 2 * time.Minute

// capture runs the Java client on the new server at addr and returns the recorded frames, by file
// name without ".txt".
func capture(t *testing.T, addr string) map[string][]Frame {
	t.Helper()
	rec := newRecorder()
	p, err := newProxy(addr, rec)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	if err := runSteps(t.Context(), javaClients.Command(t, "Golden", p.addr(), addr), p, rec); err != nil {
		t.Fatal(err)
	}
	if err := rawSteps(p, rec); err != nil {
		t.Fatal(err)
	}
	rec.begin("", false)
	return rec.frames
}

// runSteps runs the Java client. It prints a line before each step, and continues after it has read
// a line.
func runSteps(ctx context.Context, cmd *exec.Cmd, p *proxy, rec *recorder) error {
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("clients: %w", err)
	}
	// StdoutPipe would be closed at the child's end before the test has read all output.
	ours, theirs := io.Pipe()
	cmd.Stdout = theirs
	proc, err := harness.Start(cmd)
	if err != nil {
		return err
	}
	defer proc.Kill()
	defer context.AfterFunc(ctx, proc.Kill)()
	// Ends with the child, and ends the scanner below.
	go func() {
		<-proc.Done()
		_ = theirs.Close()
	}()
	lines := bufio.NewScanner(ours)
	for lines.Scan() {
		verb, step, _ := strings.Cut(lines.Text(), " ")
		if verb == "end" {
			return nil
		}
		if err := beginStep(ctx, verb, step, p, rec); err != nil {
			return err
		}
		if _, err := io.WriteString(stdin, "go\n"); err != nil {
			break
		}
	}
	err = proc.Wait() // before reading stderr
	return fmt.Errorf("%w: %w: %s", ErrClient, err, stderr.Bytes())
}

func beginStep(ctx context.Context, verb, step string, p *proxy, rec *recorder) error {
	switch verb {
	case "step":
		rec.begin(step, false)
	case "mute":
		rec.begin("", false)
	case "cut":
		rec.begin(step, false)
		p.cut()
	case "open":
		p.open()
	case "ping":
		rec.begin(step, true)
		ctx, cancel := context.WithTimeout(ctx, pingTimeout)
		defer cancel()
		select {
		case <-rec.ponged:
		case <-ctx.Done():
			return fmt.Errorf("clients: no ping: %w", ctx.Err())
		}
	default:
		return fmt.Errorf("%w: unknown verb %q", ErrClient, verb)
	}
	return nil
}
