package delivery

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zklock/zklock/test/harness"
)

// shell runs command lines, with zklock in PATH and ZKLOCK_SERVERS set.
type shell struct {
	t   *testing.T
	ctx context.Context
	env []string
	dir string
}

func newShell(t *testing.T, servers string) *shell {
	bin := harness.Command(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return &shell{t: t, ctx: ctx, dir: t.TempDir(), env: append(os.Environ(),
		"ZKLOCK_SERVERS="+servers,
		"ZKLOCK_HOME=/nonexistent/and/never/used",
		"PATH="+filepath.Dir(bin)+":"+os.Getenv("PATH"))}
}

// within returns the shell for a subtest.
func (s *shell) within(t *testing.T) *shell {
	sub := *s
	sub.t = t
	return &sub
}

func (s *shell) command(line string) *exec.Cmd {
	c := exec.CommandContext(s.ctx, "sh", "-c", line)
	c.Env, c.Dir = s.env, s.dir
	// A child of a killed shell may keep the output open.
	c.WaitDelay = time.Minute
	return c
}

// run returns the output and the exit code of a line.
func (s *shell) run(line string) (stdout, stderr string, code int) {
	s.t.Helper()
	c := s.command(line)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	err := c.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.t.Fatalf("%s: %v", line, err)
	}
	return out.String(), errs.String(), c.ProcessState.ExitCode()
}

// expect runs a line, checks its exit code, and returns its standard output.
func (s *shell) expect(code int, line string) string {
	s.t.Helper()
	out, errs, got := s.run(line)
	if got != code {
		s.t.Fatalf("%s: exit code %d, want %d\n%s%s", line, got, code, out, errs)
	}
	return out
}

// start runs a line in the background until the test ends.
func (s *shell) start(line string) *exec.Cmd {
	s.t.Helper()
	c := s.command(line)
	if err := c.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		c.Process.Kill()
		c.Wait()
	})
	return c
}

// await waits until a file in the shell's directory has content, and returns it.
func (s *shell) await(name string) string {
	s.t.Helper()
	for {
		if b, err := os.ReadFile(filepath.Join(s.dir, name)); err == nil && len(b) > 0 {
			return strings.TrimSpace(string(b))
		}
		select {
		case <-s.ctx.Done():
			s.t.Fatalf("timed out waiting for %s", name)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func token(t *testing.T, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimPrefix(text, "token ")), 10, 64)
	if err != nil || n <= 0 {
		t.Fatalf("token %q: %v", text, err)
	}
	return n
}

func TestCommandOnEnsemble(t *testing.T) {
	cluster := harness.StartEnsemble(t, 3, harness.ServerConfig{})
	s := newShell(t, cluster.ConnectString())
	first := token(t, s.expect(0, `zklock run demo -- sh -c 'echo "token $ZKLOCK_TOKEN"'`))
	s.expect(7, `zklock run demo -- sh -c 'exit 7'`)
	s.expect(128+15, `zklock run demo -- sh -c 'kill -TERM $$'`)
	s.expect(127, `zklock run demo -- /no/such/command`)
	s.expect(126, `zklock run demo -- /`)
	s.expect(2, `zklock run demo`)
	t.Run("HeldLock", func(t *testing.T) { heldLock(t, s.within(t), first) })
	t.Run("MutualExclusion", func(t *testing.T) { mutualExclusion(t, s.within(t)) })
	t.Run("RunKilled", func(t *testing.T) { runKilled(t, s.within(t)) })
	t.Run("LeaderKilled", func(t *testing.T) { leaderKilled(t, s.within(t), cluster) })
}

// heldLock checks what other commands report about a lock that is held.
func heldLock(t *testing.T, s *shell, first int64) {
	c := s.start(`exec zklock run demo -- sh -c 'echo $ZKLOCK_TOKEN >held; read line <go'`)
	if err := syscall.Mkfifo(filepath.Join(s.dir, "go"), 0o600); err != nil {
		t.Fatal(err)
	}
	second := token(t, s.await("held"))
	if second <= first {
		t.Errorf("token %d after %d", second, first)
	}
	s.expect(124, `zklock run -n demo -- true`)
	s.expect(9, `zklock run -n -E 9 demo -- true`)
	s.expect(124, `zklock run -w 5s demo -- true`)
	if out := s.expect(0, `zklock show demo`); !strings.Contains(out, strconv.FormatInt(second, 10)) {
		t.Errorf("show: %s", out)
	}
	if out := s.expect(0, `zklock ls`); !strings.Contains(out, "demo") {
		t.Errorf("ls: %s", out)
	}
	s.expect(0, `echo >go`)
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
}

// mutualExclusion starts two commands at once. The second must wait for the first.
func mutualExclusion(t *testing.T, s *shell) {
	line := `zklock run turns -- sh -c 'echo begin >>log; sleep 0.2; echo end >>log'`
	a, b := s.start(line), s.start(line)
	for _, c := range []*exec.Cmd{a, b} {
		if err := c.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Fields(s.expect(0, `cat log`)); strings.Join(got, " ") != "begin end begin end" {
		t.Errorf("they ran %v", got)
	}
}

// runKilled kills zklock run. Its child must be dead when the next command gets the lock.
func runKilled(t *testing.T, s *shell) {
	c := s.start(`exec zklock run --session-timeout 3s killed -- sh -c 'echo $$ >child; exec sleep 1000'`)
	child, err := strconv.Atoi(s.await("child"))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	out := s.expect(0, `zklock run killed -- sh -c 'kill -0 `+strconv.Itoa(child)+` 2>/dev/null && echo alive || echo dead'`)
	if strings.TrimSpace(out) != "dead" {
		t.Errorf("the old child is %s while the new one runs", out)
	}
	t.Logf("the next one had the lock %v after the kill", time.Since(begun))
}

// leaderKilled kills the leader. The running command must keep its lock.
func leaderKilled(t *testing.T, s *shell, cluster *harness.Ensemble) {
	c := s.start(`exec zklock run survives -- sh -c 'echo $ZKLOCK_TOKEN >before; read line <on'`)
	if err := syscall.Mkfifo(filepath.Join(s.dir, "on"), 0o600); err != nil {
		t.Fatal(err)
	}
	before := token(t, s.await("before"))
	leader, err := cluster.WaitLeader(s.ctx)
	if err != nil {
		t.Fatal(err)
	}
	leader.Kill()
	// The next command waits for the election of a new leader, and finds the holder.
	s.expect(124, `zklock run -n --connect-timeout 2m survives -- true`)
	s.expect(0, `echo >on`)
	if err := c.Wait(); err != nil {
		t.Errorf("the command that held while the leader died: %v", err)
	}
	if after := token(t, s.expect(0, `zklock run survives -- sh -c 'echo $ZKLOCK_TOKEN'`)); after <= before {
		t.Errorf("token %d after %d", after, before)
	}
}

// TestRefusedConnectionNamesMaxClientCnxns opens as many connections as a server permits from
// one address. The server closes the next one, and the error names the setting.
func TestRefusedConnectionNamesMaxClientCnxns(t *testing.T) {
	const limit = 3
	server := harness.StartServer(t, harness.ServerConfig{Extra: map[string]string{"maxClientCnxns": strconv.Itoa(limit)}})
	s := newShell(t, server.Addr())
	for i := range limit {
		s.start(`exec zklock run ` + strconv.Itoa(i) + ` -- sh -c 'echo yes >` + strconv.Itoa(i) + `; exec sleep 1000'`)
	}
	for i := range limit {
		s.await(strconv.Itoa(i))
	}
	for _, line := range []string{`zklock run --connect-timeout 5s next -- true`, `zklock ls --connect-timeout 5s`} {
		if _, errs, code := s.run(line); code != 125 || !strings.Contains(errs, "maxClientCnxns") {
			t.Errorf("%s: exit code %d, %s", line, code, errs)
		}
	}
}

// TestReadOnlyShowsHoldersWithoutQuorum stops two of three servers. A command with --read-only
// must show the holders, and one without must fail.
func TestReadOnlyShowsHoldersWithoutQuorum(t *testing.T) {
	ensemble := harness.StartEnsemble(t, 3, harness.ServerConfig{
		JavaFlags: []string{"-Dreadonlymode.enabled=true"},
		Extra:     map[string]string{"localSessionsEnabled": "true", "localSessionsUpgradingEnabled": "true"}, // a read-only server makes no other sessions
	})
	s := newShell(t, ensemble.ConnectString())
	s.start(`exec zklock run --session-timeout 20 demo -- sh -c 'echo yes >held; exec sleep 1000'`)
	s.await("held")
	for _, server := range ensemble.Servers[1:] {
		server.Kill()
	}
	for {
		out, errs, code := s.run(`zklock show --read-only --connect-timeout 5s -o json demo`)
		if code == 0 {
			if !strings.Contains(out, `"holders":1`) {
				t.Errorf("%s%s", out, errs)
			}
			break
		}
		if s.ctx.Err() != nil {
			t.Fatalf("exit code %d: %s", code, errs)
		}
	}
	if out, errs, code := s.run(`zklock show --connect-timeout 2s demo`); code != 125 {
		t.Errorf("without --read-only: exit code %d\n%s%s", code, out, errs)
	}
}
