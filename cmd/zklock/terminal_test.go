//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"
	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

// screen is the output of a program on a pseudo-terminal.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
	seen int
}

// Write appends to the text.
func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

// find searches the unmatched text for re, and skips the match.
func (s *screen) find(re *regexp.Regexp) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := re.FindIndex(s.text.Bytes()[s.seen:])
	if at == nil {
		return false
	}
	s.seen += at[1]
	return true
}

// rest returns the unmatched text.
func (s *screen) rest() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.text.Bytes()[s.seen:])
}

// terminal runs an interactive shell on a terminal with a dialogue. Lines of the file are ">
// text" to type (^C, ^Z, ^\, and ^D are keys, ^I is a tab in a text), and "< regexp" to wait for.
//
//	terminal DIALOGUE
func terminal(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: terminal DIALOGUE")
	}
	cmd := exec.Command("bash", "--norc", "--noprofile", "-i")
	cmd.Dir = ts.MkAbs(".")
	for _, key := range []string{"PATH", "HOME", "WORK", "ZKLOCK_HOME", "ZKLOCK_IDLE"} {
		cmd.Env = append(cmd.Env, key+"="+ts.Getenv(key))
	}
	// Otherwise, bash surrounds its prompt with escape sequences.
	keys := ts.MkAbs(".inputrc")
	ts.Check(os.WriteFile(keys, []byte("set enable-bracketed-paste off\n"), 0o600))
	cmd.Env = append(cmd.Env, "TERM=vt100", "INPUTRC="+keys, "PS1=ready> ", "HISTFILE=/dev/null")
	// Jobs of a shell ignore the signals that the shell ignored at its start. Tests that run in
	// the background may ignore ^C and ^\. A signal handler is not inherited.
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGINT, syscall.SIGQUIT)
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 100})
	signal.Stop(caught)
	ts.Check(err)
	out := &screen{}
	read := make(chan struct{})
	// Ends when the shell has closed the terminal.
	go func() {
		defer close(read)
		_, _ = out.readFrom(tty)
	}()
	ended := make(chan error, 1)
	// Ends with the shell.
	go func() { ended <- cmd.Wait() }()
	talk(ts, tty, out, ts.ReadFile(args[0]), cmd.Process.Pid, func() { _ = syscall.Kill(cmd.Process.Pid, syscall.SIGKILL) })
	select {
	case <-ended:
	case <-time.After(patience):
		_ = cmd.Process.Kill()
		ts.Fatalf("the shell did not end; on the screen: %s", out.rest())
	}
	_ = tty.Close()
	<-read
}

// readFrom copies until the terminal is closed, which Linux reports as an error.
func (s *screen) readFrom(tty *os.File) (int64, error) {
	buf := make([]byte, 4096)
	for {
		n, err := tty.Read(buf)
		_, _ = s.Write(buf[:n])
		if err != nil {
			return 0, err
		}
	}
}

// jobInForeground reports whether the terminal's keys go to a job of the shell. The shell
// prints the command of a job that fg continues before it gives the job the terminal.
func jobInForeground(tty *os.File, shell int) bool {
	group := shell
	raw, err := tty.SyscallConn()
	if err != nil {
		return false
	}
	_ = raw.Control(func(fd uintptr) {
		if g, err := unix.IoctlGetInt(int(fd), unix.TIOCGPGRP); err == nil {
			group = g
		}
	})
	return group != shell
}

// talk runs the dialogue. It sends ^C and ^Z only to jobs.
func talk(ts *testscript.TestScript, tty *os.File, out *screen, dialogue string, shell int, abort func()) {
	keys := map[string]string{"^C": "\x03", "^Z": "\x1a", `^\`: "\x1c", "^D": "\x04"}
	for line := range bytes.Lines([]byte(dialogue)) {
		text := string(bytes.TrimRight(line, "\n"))
		switch {
		case len(text) < 2:
		case text[:2] == "> ":
			key, ok := keys[text[2:]]
			if !ok {
				key = strings.ReplaceAll(text[2:], "^I", "\t") + "\n"
			}
			if (text == "> ^C" || text == "> ^Z") && !poll(func() bool { return jobInForeground(tty, shell) }) {
				abort()
				ts.Fatalf("%s: no job of the shell has the terminal; on the screen: %q", text, out.rest())
			}
			_, err := tty.WriteString(key)
			ts.Check(err)
		case text[:2] == "< ":
			re := regexp.MustCompile(text[2:])
			if !poll(func() bool { return out.find(re) }) {
				abort()
				ts.Fatalf("the terminal never showed %s, but: %q", text[2:], out.rest())
			}
		default:
			ts.Fatalf("dialogue: %q begins with neither > nor <", text)
		}
	}
}
