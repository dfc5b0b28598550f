//go:build unix

package process

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patience limits each wait of a test.
const patience = 2 * time.Minute

// runScript starts sh with a script and returns it.
func runScript(t *testing.T, script string, env ...string) *Child {
	t.Helper()
	c, err := StartCommand(Command{Path: "/bin/sh", Args: []string{"sh", "-c", script}, Env: env}, os.Args[0],
		func(int) error { return nil })
	if err == nil {
		err = <-c.Began()
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// leave runs a script that writes the line "up" when it is ready. It returns the later output of
// its processes, which ends when the last of them has ended.
func leave(t *testing.T, script string, env ...string) (*Child, *bufio.Reader, *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	stdout := os.Stdout
	os.Stdout = w
	c := runScript(t, script, append(env, "PATH="+os.Getenv("PATH"))...)
	os.Stdout = stdout
	w.Close()
	lines := bufio.NewReader(r)
	if line, err := lines.ReadString('\n'); line != "up\n" {
		t.Fatalf("%s: the command said %q, %v", script, line, err)
	}
	return c, lines, r
}

// awaitExit waits until a child has ended.
func awaitExit(t *testing.T, c *Child) Exit {
	t.Helper()
	select {
	case e := <-c.Exited():
		return e
	case <-time.After(patience):
		c.Kill()
		t.Fatal("the command does not end")
		return Exit{}
	}
}

func TestExitReportsCodeOrSignal(t *testing.T) {
	tests := []struct {
		script string
		want   Exit
		status int
	}{
		{"exit 0", Exit{Code: 0}, 0},
		{"exit 42", Exit{Code: 42}, 42},
		{"kill -9 $$", Exit{Code: -1, Signal: 9}, 137},
		{"kill -15 $$", Exit{Code: -1, Signal: 15}, 143},
		{`test "$KEY" = value`, Exit{Code: 0}, 0},
		{`test "$(ps -o pgid= -p $$ | tr -d " ")" = $$`, Exit{Code: 0}, 0},
	}
	for _, tt := range tests {
		got := awaitExit(t, runScript(t, tt.script, "KEY=value", "PATH="+os.Getenv("PATH")))
		if got != tt.want || got.Status() != tt.status {
			t.Errorf("%q: %+v, status %d; want %+v, status %d", tt.script, got, got.Status(), tt.want, tt.status)
		}
	}
}

func TestReadyComesBeforeTheCommand(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "ran")
	cmd := Command{Path: "/bin/sh", Args: []string{"sh", "-c", "echo >" + mark}}
	refusal := errors.New("not now")
	_, err := StartCommand(cmd, os.Args[0], func(group int) error {
		if err := syscall.Kill(-group, 0); err != nil {
			t.Errorf("the group is not there yet: %v", err)
		}
		return refusal
	})
	if !errors.Is(err, refusal) {
		t.Errorf("got %v, want what ready returned", err)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("the command ran although it was refused")
	}
}

// TestCommandBeginsWhenAdmitted checks that StartCommand does not wait for Admit, that the command
// begins only when Admit returns nil, and that Admit learns that a signal has ended the process.
func TestCommandBeginsWhenAdmitted(t *testing.T) {
	refusal := errors.New("not now")
	for name, test := range map[string]struct {
		answer error // of Admit; ErrEnded if it waits for the end of the process
		want   Exit
	}{
		"admitted":             {nil, Exit{Code: 3}},
		"refused":              {refusal, Exit{Code: 125}},
		"ended by TERM before": {ErrEnded, Exit{Code: -1, Signal: int(syscall.SIGTERM)}},
	} {
		t.Run(name, func(t *testing.T) {
			mark := filepath.Join(t.TempDir(), "ran")
			answers := make(chan error)
			c, err := StartCommand(Command{
				Path: "/bin/sh", Args: []string{"sh", "-c", "echo >" + mark + "; exit 3"},
				Admit: func(group int, ended <-chan struct{}) error {
					select {
					case err := <-answers:
						return err
					case <-ended:
						return ErrEnded
					}
				},
			}, os.Args[0], func(int) error { return nil })
			if err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(mark); err == nil {
				t.Error("the command ran before it was admitted")
			}
			if test.answer == ErrEnded {
				c.Signal(syscall.SIGTERM)
			} else {
				answers <- test.answer
			}
			if err := <-c.Began(); err != test.answer {
				t.Errorf("began: %v, want %v", err, test.answer)
			}
			if got := awaitExit(t, c); got != test.want {
				t.Errorf("ended with %+v, want %+v", got, test.want)
			}
			if _, err := os.Stat(mark); (err == nil) != (test.answer == nil) {
				t.Errorf("the command's file: %v", err)
			}
		})
	}
}

// TestSlowExecIsNotAwaited checks that StartCommand returns before the exec has ended, which a file
// system can delay, and that the process can be killed until then. Here, the process is stopped.
func TestSlowExecIsNotAwaited(t *testing.T) {
	for _, begins := range []bool{true, false} {
		started := make(chan *Child, 1)
		go func() { // ends with the start, or with the test process
			c, err := StartCommand(Command{Path: "/bin/sh", Args: []string{"sh", "-c", "exit 3"}}, os.Args[0],
				func(group int) error { return syscall.Kill(-group, syscall.SIGSTOP) })
			if err != nil {
				t.Error(err)
			}
			started <- c
		}()
		var c *Child
		select {
		case c = <-started:
		case <-time.After(patience / 8):
			t.Fatal("the start waits for the exec")
		}
		if sig := <-c.Stopped(); sig != int(syscall.SIGSTOP) {
			t.Errorf("stopped by %d", sig)
		}
		select {
		case err := <-c.Began():
			t.Errorf("the command began while it was stopped: %v", err)
		default:
		}
		want := Exit{Code: 3}
		if begins {
			c.Signal(syscall.SIGCONT)
		} else {
			want = Exit{Code: -1, Signal: 9}
			c.Kill()
		}
		if err := <-c.Began(); err != nil {
			t.Error(err)
		}
		if got := awaitExit(t, c); got != want {
			t.Errorf("ended with %+v, want %+v", got, want)
		}
	}
}

func TestSignalReachesTheGroup(t *testing.T) {
	c, lines, _ := leave(t, `sh -c 'echo up; exec sleep 1000'; echo "never"`)
	c.Terminate(BootTime() + patience)
	if got := awaitExit(t, c); got.Signal != int(syscall.SIGTERM) {
		t.Errorf("ended by %+v, want TERM", got)
	}
	// The pipe ends when no process of the group is left.
	if rest, err := lines.ReadString('\n'); rest != "" {
		t.Errorf("the command went on to say %q, %v", rest, err)
	}
	c.Kill() // a group that is gone is no trouble
}

// TestKillReachesBeyondTheGroup: timeout(1) makes a group of its own, so it outlives a shell that
// got TERM or KILL.
func TestKillReachesBeyondTheGroup(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("what is outside of the group is found on Linux only")
	}
	for name, end := range map[string]func(*Child){
		"Kill":      (*Child).Kill,
		"Terminate": func(c *Child) { c.Terminate(BootTime() + patience) },
		// The shell ends. The command of timeout ignores TERM, and is an orphan.
		"both": func(c *Child) {
			c.Terminate(BootTime() + patience)
			<-c.Exited()
			c.Kill()
		},
	} {
		script := `timeout 1000 sh -c 'echo up; exec sleep 1000'; true`
		if name == "both" {
			script = `setsid sh -c 'trap "" TERM; echo up; while :; do sleep 1000; done'; true`
		}
		c, lines, r := leave(t, script)
		end(c)
		if err := r.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		// The pipe ends when no process has it open.
		if rest, err := lines.ReadString('\n'); !errors.Is(err, io.EOF) {
			t.Errorf("%s: a process is left: %q, %v", name, rest, err)
		}
	}
}

func TestStopOfCommandIsReported(t *testing.T) {
	c := runScript(t, "kill -STOP $$; exit 3")
	select {
	case sig := <-c.Stopped():
		if sig != int(syscall.SIGSTOP) {
			t.Errorf("stopped by %d, want SIGSTOP", sig)
		}
	case <-time.After(patience):
		t.Error("the stop was not reported")
	}
	c.Signal(syscall.SIGCONT)
	if got := awaitExit(t, c); got.Code != 3 {
		t.Errorf("ended with %+v, want code 3", got)
	}
}

func TestStartFails(t *testing.T) {
	dir := t.TempDir()
	script := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	tests := []struct {
		path string
		want error
	}{
		{script("interpreter", "#!/no/such/thing\n"), ErrNotFound},
		{script("format", "\x00\x01\x02\x03"), ErrNotExecutable},
		{dir, ErrNotExecutable},
		{filepath.Join(dir, "missing"), ErrNotFound},
	}
	for _, tt := range tests {
		c, err := StartCommand(Command{Path: tt.path, Args: []string{"x"}}, os.Args[0], func(int) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		if err := <-c.Began(); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.path, err, tt.want)
		}
		if got := awaitExit(t, c); got.Code != 125 {
			t.Errorf("%s: ended with %+v, want code 125", tt.path, got)
		}
	}
}

// TestScriptWithoutInterpreterLine: sh runs such a script, as execvp does, with the arguments.
func TestScriptWithoutInterpreterLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(path, []byte(`test "$*" = "one two" && exit 42`), 0o755); err != nil {
		t.Fatal(err)
	}
	c, err := StartCommand(Command{Path: path, Args: []string{"x", "one", "two"}}, os.Args[0], func(int) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	if got := awaitExit(t, c); got.Code != 42 {
		t.Errorf("the script ended with %+v, want code 42", got)
	}
}

func TestBeginRefusesInvalidArguments(t *testing.T) {
	for _, args := range [][]string{nil, {"3"}, {"x", "/bin/true", "true"}, {"1", "/bin/true", "true"}, {"999", "/bin/true", "true"}} {
		if got := ChildMain(args); got != 125 {
			t.Errorf("Begin(%q) = %d, want 125", args, got)
		}
	}
}

func TestFindSearchesPath(t *testing.T) {
	one, two := t.TempDir(), t.TempDir()
	write := func(path string, mode os.FileMode) {
		if err := os.WriteFile(path, nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(one, "both"), 0o644)
	write(filepath.Join(two, "both"), 0o755)
	write(filepath.Join(one, "plain"), 0o644)
	if err := os.Mkdir(filepath.Join(one, "dir"), 0o755); err != nil {
		t.Fatal(err)
	}
	path := one + string(filepath.ListSeparator) + two
	tests := []struct {
		name, want string
		err        error
	}{
		{"both", filepath.Join(two, "both"), nil}, // past one that may not be executed
		{filepath.Join(two, "both"), filepath.Join(two, "both"), nil},
		{"plain", "", ErrNotExecutable},
		{"dir", "", ErrNotFound}, // a directory in PATH is no command
		{one + "/dir", "", ErrNotExecutable},
		{one + "/plain", "", ErrNotExecutable},
		{one + "/missing", "", ErrNotFound},
		{"missing", "", ErrNotFound},
		{"", "", ErrNotFound},
	}
	for _, tt := range tests {
		got, err := FindCommand(tt.name, path)
		if !errors.Is(err, tt.err) || tt.err == nil && (err != nil || got != tt.want) {
			t.Errorf("Find(%q) = %q, %v; want %q, %v", strings.TrimPrefix(tt.name, one), got, err, tt.want, tt.err)
		}
	}
}

func TestFindInWorkingDirectory(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("here", nil, 0o755); err != nil {
		t.Fatal(err)
	}
	got, err := FindCommand("here", "/nowhere"+string(filepath.ListSeparator))
	if err != nil || !filepath.IsAbs(got) || filepath.Base(got) != "here" {
		t.Errorf("an empty entry of PATH found %q, %v", got, err)
	}
}
