package hold

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/cmd/zklock/internal/cli"
	"github.com/zklock/zklock/cmd/zklock/internal/process"
)

func TestStatusLineFinish(t *testing.T) {
	tests := []struct {
		set  string
		err  error
		want statusLine
	}{
		{outcomeExited, nil, statusLine{Outcome: outcomeExited}},
		{outcomeExited, &cli.ExitError{Code: 3}, statusLine{Outcome: outcomeExited, Exit: 3}},
		{"", cli.UsageError("bad"), statusLine{Outcome: outcomeUsage, Exit: 2, Error: "bad"}},
		{"", process.ErrNotFound, statusLine{Outcome: outcomeNotFound, Exit: 127, Error: process.ErrNotFound.Error()}},
		{"", process.ErrNotExecutable, statusLine{Outcome: outcomeNotExecutable, Exit: 126, Error: process.ErrNotExecutable.Error()}},
		{"", errors.New("x"), statusLine{Outcome: outcomeFailed, Exit: 125, Error: "x"}},
	}
	for _, tt := range tests {
		s := statusLine{Outcome: tt.set}
		s.finish(tt.err)
		if !reflect.DeepEqual(s, tt.want) {
			t.Errorf("%v gives %+v, want %+v", tt.err, s, tt.want)
		}
	}
}

func TestStatusLineWrite(t *testing.T) {
	name := filepath.Join(t.TempDir(), "status")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	zero := 0
	s := statusLine{Outcome: outcomeExited, Lock: "a\nb\u202e\u2003", Code: &zero}
	s.write(f)
	got, err := os.ReadFile(name)
	want := `{"outcome":"exited","exit":0,"lock":"a\nb\u202e\u2003","path":"","acquired":false,"started":false,"code":0,"released":false}` + "\n"
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

// TestUnreadStatusLineDelaysTheExitForABoundedTime: nothing reads the status line.
func TestUnreadStatusLineDelaysTheExitForABoundedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		began := time.Now()
		(&statusLine{Outcome: outcomeExited}).write(w)
		if took := time.Since(began); took != statusTime {
			t.Errorf("the line delayed the exit for %v, want %v", took, statusTime)
		}
		_ = r.Close() // ends the write
		synctest.Wait()
	})
}

func TestStatusFile(t *testing.T) {
	if f, err := statusFile(-1); f != nil || err != nil {
		t.Errorf("no descriptor gives %v, %v", f, err)
	}
	if _, err := statusFile(1 << 20); cli.ExitCode(err) != 2 {
		t.Errorf("a closed descriptor gives %v, want a usage error", err)
	}
}
