//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/zklock/zklock/cmd/zklock/internal/local"
	"github.com/zklock/zklock/zk"
)

// patience limits each wait of a script.
const patience = 2 * time.Minute

// stopServer stops the server that a script has started, if any.
func stopServer(home string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := local.Place{Dir: home}.Stop(ctx)
	if err != nil && !errors.Is(err, local.ErrNotRunning) {
		fmt.Fprintln(os.Stderr, "stopping a script's server:", err)
	}
}

// poll calls ready until it returns true, at most for patience.
func poll(ready func() bool) bool {
	deadline := time.After(patience)
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for {
		if ready() {
			return true
		}
		select {
		case <-deadline:
			return false
		case <-look.C:
		}
	}
}

// waitFor waits until each file has a whole line.
//
//	waitfor FILE...
func waitFor(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: waitfor FILE...")
	}
	for _, name := range args {
		if !poll(func() bool {
			b, err := os.ReadFile(ts.MkAbs(name))
			return err == nil && bytes.HasSuffix(b, []byte("\n"))
		}) {
			ts.Fatalf("%s never had a line", name)
		}
	}
}

// waitLine waits until a file has a line that matches.
//
//	waitline FILE REGEXP
func waitLine(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: waitline FILE REGEXP")
	}
	re, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	if !poll(func() bool {
		b, err := os.ReadFile(ts.MkAbs(args[0]))
		return err == nil && re.Match(b)
	}) {
		b, _ := os.ReadFile(ts.MkAbs(args[0]))
		ts.Fatalf("%s never had %s, but:\n%s", args[0], args[1], b)
	}
}

// waitGone waits until the process with the ID in a file has ended. Zombies count as ended.
//
//	waitgone PIDFILE
func waitGone(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: waitgone PIDFILE")
	}
	pid := readPID(ts, args[0])
	if !poll(func() bool { return !alive(pid) }) {
		ts.Fatalf("process %d still lives", pid)
	}
}

// alive reports whether a process runs.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}

// readPID reads a file with a process id.
func readPID(ts *testscript.TestScript, name string) int {
	b, err := os.ReadFile(ts.MkAbs(name))
	ts.Check(err)
	first, _, _ := strings.Cut(string(b), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(first))
	ts.Check(err)
	if pid < 2 {
		ts.Fatalf("%s has %d, which is no process to signal", name, pid)
	}
	return pid
}

// signalProcess sends a signal to the process whose id a file holds.
//
//	signal KILL PIDFILE
func signalProcess(ts *testscript.TestScript, neg bool, args []string) {
	signals := map[string]syscall.Signal{
		"KILL": syscall.SIGKILL, "TERM": syscall.SIGTERM, "INT": syscall.SIGINT,
		"STOP": syscall.SIGSTOP, "CONT": syscall.SIGCONT, "USR1": syscall.SIGUSR1,
	}
	if neg || len(args) != 2 || signals[args[0]] == 0 {
		ts.Fatalf("usage: signal KILL|TERM|INT|STOP|CONT|USR1 PIDFILE")
	}
	ts.Check(syscall.Kill(readPID(ts, args[1]), signals[args[0]]))
}

// within runs a command that must succeed within a time.
//
//	within DURATION COMMAND...
func within(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: within DURATION COMMAND...")
	}
	limit, err := time.ParseDuration(args[0])
	ts.Check(err)
	began := time.Now()
	err = ts.Exec(args[1], args[2:]...)
	took := time.Since(began)
	if (err == nil) == neg {
		ts.Fatalf("%v: %v", args[1:], err)
	}
	if took > limit {
		ts.Fatalf("%v took %v, more than %v", args[1:], took, limit)
	}
	ts.Logf("took %v of %v", took, limit)
}

// exitCode runs a command that must exit with a code.
//
//	code N COMMAND...
func exitCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N COMMAND...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v: %v", args[1:], err)
	}
	if got != want {
		ts.Fatalf("%v exited with %d, want %d", args[1:], got, want)
	}
}

// less checks that the numbers in the files increase.
//
//	less FILE FILE...
func less(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: less FILE FILE...")
	}
	last := int64(-1 << 63)
	for _, name := range args {
		n, err := strconv.ParseInt(strings.TrimSpace(ts.ReadFile(name)), 10, 64)
		ts.Check(err)
		if n <= last {
			ts.Fatalf("%s has %d, not more than %d", name, n, last)
		}
		last = n
	}
}

// readVar sets a variable to a file's first line.
//
//	readvar NAME FILE
func readVar(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: readvar NAME FILE")
	}
	line, _, _ := strings.Cut(ts.ReadFile(args[1]), "\n")
	ts.Setenv(args[0], line)
}

// condition evaluates the condition [root].
func condition(cond string) (bool, error) {
	if cond == "root" {
		return os.Geteuid() == 0, nil
	}
	return false, fmt.Errorf("unknown condition %q", cond)
}

// deleteLock deletes the znodes of a lock's queue, as an operator.
//
//	deletelock NAME
func deleteLock(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: deletelock NAME")
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	place := local.Place{Dir: ts.Getenv("ZKLOCK_HOME")}
	z, err := zk.Dial(ctx, "unix:"+place.Socket(), nil)
	ts.Check(err)
	defer z.Close()
	path := "/zklock/" + args[0]
	children, _, err := z.Children(ctx, path)
	ts.Check(err)
	if len(children) == 0 {
		ts.Fatalf("%s has no entries to delete", path)
	}
	for _, child := range children {
		ts.Check(z.Delete(ctx, path+"/"+child, -1))
	}
}
