package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/cmd/zklock/internal/process"
	"github.com/zklock/zklock/zk"
)

func TestCode(t *testing.T) {
	tests := []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("anything"), 125},
		{UsageError("x"), 2},
		{fmt.Errorf("wrapped: %w", &ExitError{Code: 77}), 77},
		{fmt.Errorf("x: %w", zklock.ErrInvalidName), 2},
		{fmt.Errorf("x: %w", zk.ErrInvalidServers), 2},
		{fmt.Errorf("x: %w", process.ErrNotFound), 127},
		{fmt.Errorf("x: %w", process.ErrNotExecutable), 126},
		{fmt.Errorf("x: %w", zklock.ErrLost), 120},
	}
	for _, tt := range tests {
		if got := ExitCode(tt.err); got != tt.want {
			t.Errorf("code(%v) = %d, want %d", tt.err, got, tt.want)
		}
	}
}

func TestInterruptible(t *testing.T) {
	signals := make(chan os.Signal)
	ctx, stop := Interruptible(signals, nil)
	signals <- syscall.SIGPIPE // does not end programs
	if ctx.Err() != nil {
		t.Fatal("any signal interrupts")
	}
	signals <- syscall.SIGTERM
	<-ctx.Done()
	if got := ExitCode(Interrupted(ctx, nil)); got != 143 {
		t.Errorf("exit code %d after TERM, want 143", got)
	}
	stop()
	ctx, stop = Interruptible(signals, nil)
	stop()
	if err := Interrupted(ctx, nil); err != nil {
		t.Errorf("a context without an interrupt gives %v", err)
	}
}

// TestUntilInterruptedEndsBlockedWrite: nothing reads standard output.
func TestUntilInterruptedEndsBlockedWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		signals := make(chan os.Signal, 1)
		ctx, stop := Interruptible(signals, nil)
		defer stop()
		defer r.Close()
		began := time.Now()
		signals <- syscall.SIGTERM
		err := UntilInterrupted(ctx, func() error {
			_, err := w.Write([]byte("x"))
			return err
		})
		if took := time.Since(began); took != lastTime || ExitCode(Interrupted(ctx, err)) != 143 {
			t.Errorf("it ended after %v with %v, want the signal after %v", took, err, lastTime)
		}
	})
	want := errors.New("printed")
	if err := UntilInterrupted(t.Context(), func() error { return want }); err != want {
		t.Errorf("without a signal, the error is %v", err)
	}
}

func TestFromEnvironment(t *testing.T) {
	type env map[string]string
	tests := []struct {
		name string
		args []string
		env  env
		want string // servers session wait conflict
		err  string
	}{
		{"nothing", nil, nil, " 20s 0s 124", ""},
		{"environment", nil, env{"ZKLOCK_SERVERS": "a:1", "ZKLOCK_SESSION_TIMEOUT": "5", "ZKLOCK_TIMEOUT": "1m", "ZKLOCK_CONFLICT_EXIT_CODE": "0"}, "a:1 5s 1m0s 0", ""},
		{"flags come first", []string{"--servers=b:2", "-w", "3", "-E9"}, env{"ZKLOCK_SERVERS": "a:1", "ZKLOCK_TIMEOUT": "1m", "ZKLOCK_CONFLICT_EXIT_CODE": "0"}, "b:2 20s 3s 9", ""},
		{"-n overrules a time from the environment", []string{"-n"}, env{"ZKLOCK_TIMEOUT": "1m"}, " 20s 0s 124", ""},
		{"empty is unset", nil, env{"ZKLOCK_SESSION_TIMEOUT": ""}, " 20s 0s 124", ""},
		{"what a command is told is no setting", nil, env{"ZKLOCK_SESSION": "x", "ZKLOCK_NAME": "x", "ZKLOCK_TOKEN": "x", "ZKLOCK_PATH": "x", "ZKLOCK_MODE": "x"}, " 20s 0s 124", ""},
		{"nonsense names the variable", nil, env{"ZKLOCK_TIMEOUT": "soon"}, "", `ZKLOCK_TIMEOUT: "soon" is not a duration: give`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var s Settings
			f := pflag.NewFlagSet("x", pflag.ContinueOnError)
			s.ConnectionFlags(f)
			s.WaitFlags(f)
			if err := f.Parse(tt.args); err != nil {
				t.Fatal(err)
			}
			err := FromEnvironment(f, func(key string) string { return tt.env[key] })
			if err == nil {
				err = s.Check(f)
			}
			if tt.err != "" {
				if ExitCode(err) != 2 || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("error %v, want usage with %q", err, tt.err)
				}
				return
			}
			got := fmt.Sprintf("%s %v %v %d", s.Servers, s.Session.D, s.Wait.D, s.Conflict)
			if err != nil || got != tt.want {
				t.Errorf("got %q, %v; want %q", got, err, tt.want)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	good := Settings{Session: Duration{D: defaultSession}, Connect: Duration{D: defaultConnect}, Conflict: 124}
	f := pflag.NewFlagSet("x", pflag.ContinueOnError)
	if err := good.Check(f); err != nil {
		t.Fatal(err)
	}
	bad := []func(*Settings){
		func(s *Settings) { s.Session.D = 1 },
		func(s *Settings) { s.Session.D = 25 * time.Hour },
		func(s *Settings) { s.Connect.D = 0 },
		func(s *Settings) { s.Wait.D = -1 },
		func(s *Settings) { s.Conflict = -1 },
		func(s *Settings) { s.Conflict = 256 },
	}
	for i, spoil := range bad {
		s := good
		spoil(&s)
		if err := s.Check(f); ExitCode(err) != 2 {
			t.Errorf("%d: %v, want a usage error", i, err)
		}
	}
}

func TestPrefixPath(t *testing.T) {
	for in, want := range map[string]string{"": "/zklock", "/": "/", "a": "/zklock/a", "a/": "/zklock/a", "/b/c": "/b/c"} {
		var args []string
		if in != "" {
			args = []string{in}
		}
		if got, err := PrefixPath(args); err != nil || got != want {
			t.Errorf("prefixPath(%q) = %q, %v; want %q", in, got, err, want)
		}
	}
	if _, err := PrefixPath([]string{"a//b"}); !errors.Is(err, zklock.ErrInvalidName) {
		t.Errorf("a bad prefix gives %v", err)
	}
}

// TestWarningIsOneLegibleLine checks that an error with text of a server is one line without
// control characters.
func TestWarningIsOneLegibleLine(t *testing.T) {
	if got := Warning("ZKLOCK_LAYOUT is %q", strings.Repeat("é", 100_000)); len(got) > 10_000 || !utf8.ValidString(got) || !strings.HasSuffix(got, "...\n") {
		t.Errorf("a warning about a long value has %d bytes and ends with %q", len(got), got[len(got)-10:])
	}
	err := errors.Join(errors.New("dial zk1: certificate is valid for \x1b]0;x\a\u202e"), errors.New("closed"))
	if got, want := Warning("%v", err), `zklock: dial zk1: certificate is valid for \x1b]0;x\a\u202e; closed`+"\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
