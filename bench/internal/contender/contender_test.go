package contender

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock/bench/internal/lockwork"
)

// failing is a library whose Open always fails.
type failing struct{ err error }

func (f failing) Open(context.Context, string) (lockwork.Session, error) { return nil, f.err }

// work is a valid line.
var work = lockwork.Work{Path: "/p", Kind: lockwork.Mutex, Sessions: 1, Workers: 1, Locks: 1, Time: 1e6}

func TestServeReportsErrors(t *testing.T) {
	for want, openErr := range map[string]error{
		"unsupported ":          lockwork.ErrUnsupported,
		"error one; and two\n":  errors.New("one\nand two"),
		"error lockwork: inval": lockwork.ErrWork,
	} {
		var out strings.Builder
		if err := Serve(t.Context(), failing{openErr}, strings.NewReader("host:1 "+work.String()+"\n"), &out); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(out.String(), want) || strings.Count(out.String(), "\n") != 1 {
			t.Errorf("%q, want %q", out.String(), want)
		}
	}
	var out strings.Builder
	if err := Serve(t.Context(), failing{}, strings.NewReader("host:1 nonsense\n"), &out); err != nil || !strings.HasPrefix(out.String(), "error ") {
		t.Errorf("%q, %v", out.String(), err)
	}
}

// TestProcessParsesAnswers uses a shell as the contender.
func TestProcessParsesAnswers(t *testing.T) {
	for answer, want := range map[string]error{
		"ok cycles=3 nanos=1000 ho50=0 ho99=0 violations=0 heap=0": nil,
		"ok cycles=3 nanos=1000 ho50=0 ho99=0 violations=1 heap=0": ErrViolation,
		"ok cycles=0 nanos=0":   lockwork.ErrNothing,
		"unsupported semaphore": lockwork.ErrUnsupported,
	} {
		p, err := Start(exec.Command("sh", "-c", "while read -r line; do echo '"+answer+"'; done"), nil)
		if err != nil {
			t.Fatal(err)
		}
		m, err := p.Do("host:1", work)
		if !errors.Is(err, want) || want == nil && (err != nil || m.Cycles != 3) {
			t.Errorf("%q: %+v, %v", answer, m, err)
		}
		p.Stop()
		if _, err := p.Do("host:1", work); err == nil {
			t.Errorf("%q: Do succeeded after Stop", answer)
		}
	}
}

func TestSilentProcessIsKilled(t *testing.T) {
	p, err := Start(exec.Command("sh", "-c", "read -r line; exec cat"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop()
	p.limit = time.Millisecond
	if _, err := p.Do("host:1", work); err == nil || p.Alive() {
		t.Errorf("a contender that does not answer: %v, alive %v", err, p.Alive())
	}
}
