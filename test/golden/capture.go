package golden

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"github.com/zklock/zklock/test/child"
	"github.com/zklock/zklock/test/jvm"
)

// ErrClient says that the recording client did not finish; its text has what
// the client printed.
var ErrClient = errors.New("golden: the Java client failed")

// pingTimeout bounds the wait for a ping, which comes within two seconds.
const pingTimeout = 2 * time.Minute

// Capture compiles the Java client's source file into dir, runs it against the
// fresh server at addr, and returns the recorded frames by file name without
// its ".txt".
func Capture(ctx context.Context, addr, source, dir string) (map[string][]Frame, error) {
	classpath, err := jvm.Classpath("zookeeper", "zookeeper-jute", "slf4j-nop", dir)
	if err != nil {
		return nil, err
	}
	if err := jvm.Compile(ctx, classpath, dir, source); err != nil {
		return nil, err
	}
	rec := newRecorder()
	p, err := newProxy(addr, rec)
	if err != nil {
		return nil, err
	}
	defer p.close()
	cmd, err := jvm.Command(classpath, "Golden", p.addr(), addr)
	if err != nil {
		return nil, err
	}
	if err := converse(ctx, cmd, p, rec); err != nil {
		return nil, err
	}
	if err := rawSteps(p, rec); err != nil {
		return nil, err
	}
	rec.begin("", false)
	return rec.frames, nil
}

// converse runs the Java client: each line that it prints says what comes
// next, and it goes on when it has read a line.
func converse(ctx context.Context, cmd *exec.Cmd, p *proxy, rec *recorder) error {
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("golden: %w", err)
	}
	// Not StdoutPipe, which the child's end would close before all was read.
	ours, theirs := io.Pipe()
	cmd.Stdout = theirs
	proc, err := child.Start(cmd)
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
			return fmt.Errorf("golden: no ping came: %w", ctx.Err())
		}
	default:
		return fmt.Errorf("%w: it says %q", ErrClient, verb)
	}
	return nil
}
