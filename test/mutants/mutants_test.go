package mutants

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock/test/harness"
)

var full = flag.Bool("mutants.full", false, "also run the mutants of a full run")

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }

// root returns the root of the repository.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestEditsApply checks that the text of every edit occurs exactly once, that names are unique,
// and that Says does not match the name of the test.
func TestEditsApply(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range All() {
		if _, err := m.Overlay(root(t), t.TempDir()); err != nil {
			t.Error(err)
		}
		if seen[m.Name] || m.Reason == "" {
			t.Errorf("%s: named before: %v, reason %q", m.Name, seen[m.Name], m.Reason)
		}
		seen[m.Name] = true
		if says, err := regexp.Compile(m.Says); err != nil || says.MatchString("--- FAIL: "+m.Test) {
			t.Errorf("%s: any failure of %s matches %q, %v", m.Name, m.Test, m.Says, err)
		}
	}
	if len(seen) < 120 {
		t.Errorf("%d mutants only", len(seen))
	}
}

// TestMutants checks that the test of each mutant detects it.
func TestMutants(t *testing.T) {
	for _, m := range All() {
		t.Run(m.Name, func(t *testing.T) {
			if m.Full && !*full {
				t.Skip("only with -mutants.full")
			}
			t.Parallel()
			dir := t.TempDir()
			overlay, err := m.Overlay(root(t), dir)
			if err != nil {
				t.Fatal(err)
			}
			out, failed := run(t, m.Suite, dir, m.Test, append([]string{"-overlay=" + overlay}, m.Args...))
			line := matching(out, m.Says)
			switch {
			case !failed:
				t.Fatalf("survived: %s passed\n%s", m.Test, tail(out))
			case panicked.MatchString(out) || !reported.MatchString(out) || line == "":
				t.Fatalf("%s failed, but not with %q:\n%s", m.Test, m.Says, tail(out))
			}
			t.Log(line)
		})
	}
}

// TestControls checks that the same tests pass without a mutant.
func TestControls(t *testing.T) {
	var suites []Suite
	tests := map[string][]string{} // by package
	for _, m := range All() {
		if tests[m.Suite.Package] == nil {
			suites = append(suites, m.Suite)
		}
		name, _, _ := strings.Cut(m.Test, "/")
		if !slices.Contains(tests[m.Suite.Package], name) {
			tests[m.Suite.Package] = append(tests[m.Suite.Package], name)
		}
	}
	for _, s := range suites {
		t.Run(s.Package, func(t *testing.T) {
			t.Parallel()
			var args []string
			if s.Package == simulation.Package {
				s.Args, args = nil, []string{"-scenario=any,mutex,deleted,ticking,read-write,semaphore,size,several,in-order,batch,lock-delay,container"}
			}
			if out, failed := run(t, s, t.TempDir(), strings.Join(tests[s.Package], "|"), args); failed {
				t.Errorf("failed without a mutant:\n%s", tail(out))
			}
		})
	}
}

var (
	reported = regexp.MustCompile(`(?m)^\s*--- FAIL: Test`)
	skipped  = regexp.MustCompile(`(?m)^\s*--- SKIP: Test`)
	passed   = regexp.MustCompile(`(?m)^\s*--- PASS: Test`)
	panicked = regexp.MustCompile(`(?m)^(panic|fatal error): `)
)

// testLimit bounds one build, and one run of a test. They take minutes on a busy machine.
const testLimit = 25 * time.Minute

// run builds and runs a test of a suite, and returns its output and whether it failed. The first
// argument is for the build if it begins with -overlay. If the test was skipped, run skips the
// calling test, or fails it if skipping is not permitted.
func run(t *testing.T, s Suite, dir, test string, args []string) (out string, failed bool) {
	t.Helper()
	module := filepath.Join(root(t), s.Module)
	binary := filepath.Join(dir, "mutant.test")
	build := []string{"test", "-c", "-vet=off", "-o", binary}
	if len(args) > 0 && strings.HasPrefix(args[0], "-overlay=") {
		build, args = append(build, args[0]), args[1:]
	}
	if out, err := command(t, testLimit, module, "go", append(build, s.Package)...); err != nil {
		t.Fatalf("does not compile: %v\n%s", err, out)
	}
	pattern := "^(" + strings.ReplaceAll(test, "/", ")$/^(") + ")$"
	args = append(append([]string{"-test.v", "-test.count=1", "-test.run=" + pattern}, s.Args...), args...)
	out, err := command(t, testLimit, filepath.Join(module, s.Package), binary, args...)
	if err == nil && !passed.MatchString(out) {
		if skipped.MatchString(out) {
			harness.SkipOrFail(t, tail(out))
		}
		t.Fatalf("no test ran:\n%s", tail(out))
	}
	return out, err != nil
}

// command runs a command in a folder with a time limit.
func command(t *testing.T, limit time.Duration, dir, name string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.WaitDelay = 30 * time.Second // for processes that the test started
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		t.Fatalf("%s ran longer than %v:\n%s", name, limit, tail(string(out)))
	}
	return string(out), err
}

// matching returns the first line that matches the expression.
func matching(out, says string) string {
	expr := regexp.MustCompile(says)
	for line := range strings.Lines(out) {
		if expr.MatchString(line) {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// tail returns the end of a long text.
func tail(text string) string {
	const most = 3000
	if len(text) > most {
		text = "... " + text[len(text)-most:]
	}
	return text
}
