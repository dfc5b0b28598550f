package delivery

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock/test/harness"
)

// interpreters are the interpreters of the guide's programs, by file name extension.
var interpreters = map[string]string{
	".py": harness.SystemPython, ".mjs": "/usr/bin/node", ".java": "/usr/bin/java", ".rb": "/usr/bin/ruby", ".bash": "/bin/bash",
}

// worker is one program of the guide.
type worker struct {
	*reader
	file string
}

// workers returns the programs of the guide, one for each interpreter. If servers is empty,
// they use the local server.
func workers(t *testing.T, servers string) []worker {
	t.Helper()
	r := newReader(t)
	r.env = append(r.env, "ZKLOCK_SERVERS="+servers, "ZKLOCK_SESSION_TIMEOUT=40s")
	var found []worker
	for _, b := range guideBlocks(t, "other-languages.md") {
		if b.file == "" {
			continue
		}
		r.runBlock(t, b)
		if interpreters[filepath.Ext(b.file)] != "" {
			found = append(found, worker{r, b.file})
		}
	}
	if len(found) != len(interpreters) {
		t.Fatalf("%d programs for %d interpreters", len(found), len(interpreters))
	}
	return found
}

// start starts the program, which writes a number of values.
func (w worker) start(t *testing.T, values string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	t.Cleanup(cancel)
	c := exec.CommandContext(ctx, interpreters[filepath.Ext(w.file)], w.file, values)
	c.Dir, c.Env, c.Stderr = w.dir, w.env, os.Stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return c
}

// tokens returns the tokens of the writes.
func (w worker) tokens(t *testing.T) (tokens []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(w.dir, "stock"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		token, _, _ := strings.Cut(line, " ")
		tokens = append(tokens, token)
	}
	return tokens
}

// awaitWrite returns the token of the first write after n others.
func (w worker) awaitWrite(t *testing.T, n int) string {
	t.Helper()
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for end := time.Now().Add(patience); time.Now().Before(end); <-poll.C {
		if all := w.tokens(t); len(all) > n {
			return all[n]
		}
	}
	t.Fatal("the program writes nothing")
	return ""
}

// check runs the program to its end, then breaks its lock, then kills it.
func (w worker) check(t *testing.T) {
	if _, err := os.Stat(interpreters[filepath.Ext(w.file)]); err != nil {
		harness.SkipOrFail(t, err.Error())
	}
	before := len(w.tokens(t))
	if err := w.start(t, "3").Wait(); err != nil {
		t.Fatal(err)
	}
	if all := w.tokens(t)[before:]; len(all) != 3 || len(slices.Compact(all)) != 1 {
		t.Fatalf("the program wrote with the tokens %v", all)
	}
	t.Run("Broken", func(t *testing.T) {
		before := len(w.tokens(t))
		c := w.start(t, "100000000")
		w.run(t, w.dir, w.env, harness.Command(t), "break", "-y", "stock", "--token", w.awaitWrite(t, before))
		var exit *exec.ExitError
		if err := c.Wait(); !errors.As(err, &exit) || !exit.Exited() {
			t.Errorf("the program did not exit: %v", err)
		}
	})
	t.Run("Killed", func(t *testing.T) {
		before := len(w.tokens(t))
		c := w.start(t, "100000000")
		w.awaitWrite(t, before)
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = c.Wait() // reports the signal
		// Without a release, the session would last 40 s and two ticks.
		w.run(t, w.dir, w.env, harness.Command(t), "run", "-w", "30s", "stock", "--", "true")
	})
}

// TestProgramsInOtherLanguages runs the guide's programs on the local server. Each acquires
// the lock, writes with its token, and releases the lock. It exits if its lock is broken, and
// zklock releases the lock if the program is killed.
func TestProgramsInOtherLanguages(t *testing.T) {
	for _, w := range workers(t, "") {
		t.Run(filepath.Ext(w.file)[1:], w.check)
	}
}

// TestProgramsInOtherLanguagesOnZooKeeper runs them on a ZooKeeper ensemble.
func TestProgramsInOtherLanguagesOnZooKeeper(t *testing.T) {
	servers := harness.StartEnsemble(t, 3, harness.ServerConfig{}).ConnectString()
	for _, w := range workers(t, servers) {
		t.Run(filepath.Ext(w.file)[1:], w.check)
	}
}
