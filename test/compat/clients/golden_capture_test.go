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

// ErrClient says that the recording client did not finish; its text has what
// the client printed.
var ErrClient = errors.New("clients: the Java client failed")

// pingTimeout bounds the wait for a ping, which comes within two seconds.
const pingTimeout = 2 * time.Minute

// capture runs the Java client against the fresh server at addr and returns the
// recorded frames by file name without its ".txt".
func capture(t *testing.T, addr string) map[string][]Frame {
	t.Helper()
	rec := newRecorder()
	p, err := newProxy(addr, rec)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	if err := converse(t.Context(), javaClients.Command(t, "Golden", p.addr(), addr), p, rec); err != nil {
		t.Fatal(err)
	}
	if err := rawSteps(p, rec); err != nil {
		t.Fatal(err)
	}
	rec.begin("", false)
	return rec.frames
}

// converse runs the Java client: each line that it prints says what comes
// next, and it goes on when it has read a line.
func converse(ctx context.Context, cmd *exec.Cmd, p *proxy, rec *recorder) error {
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("clients: %w", err)
	}
	// Not StdoutPipe, which the child's end would close before all was read.
	ours, theirs := io.Pipe()
	cmd.Stdout = theirs
	proc, err := harness.Start(cmd)
	if err != nil {
		return err
	}
	defer proc.Kill()
	defer context.AfterFunc(ctx, proc.Kill)()
	// Ends with the child; the reader below then sees the end of the output.
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
		if err := obey(ctx, verb, step, p, rec); err != nil {
			return err
		}
		if _, err := io.WriteString(stdin, "go\n"); err != nil {
			break
		}
	}
	err = proc.Wait() // orders the read of complaints
	return fmt.Errorf("%w: %w: %s", ErrClient, err, complaints.Bytes())
}

func obey(ctx context.Context, verb, step string, p *proxy, rec *recorder) error {
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
			return fmt.Errorf("clients: no ping came: %w", ctx.Err())
		}
	default:
		return fmt.Errorf("%w: it says %q", ErrClient, verb)
	}
	return nil
}
