package delivery

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock/test/harness"
)

const docs = "../../docs/guides"

// zookeeperTools is the directory of ZooKeeper's own tools in Debian.
const zookeeperTools = "/usr/share/zookeeper/bin"

// reader runs the commands of one guide, in a new directory with a new local server.
type reader struct {
	dir  string
	env  []string
	uses map[*storage]bool
}

func newReader(t *testing.T) *reader {
	t.Helper()
	bin := harness.Command(t)
	dir := t.TempDir()
	r := &reader{dir: dir, uses: map[*storage]bool{}, env: []string{
		"PATH=" + filepath.Dir(bin) + ":" + os.Getenv("PATH") + ":" + zookeeperTools, "HOME=" + dir, "LC_ALL=C.UTF-8", "TMPDIR=" + dir,
		"ZKLOCK_HOME=" + filepath.Join(dir, "zklock"), "ZKLOCK_IDLE=30s",
	}}
	t.Cleanup(func() {
		// This fails if the guide started no server.
		c := exec.Command(bin, "serve", "--stop")
		c.Env = r.env
		_ = c.Run()
	})
	return r
}

// run runs a program, which must succeed, and returns its standard output.
func (r *reader) run(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, name, args...)
	c.Dir, c.Env, c.WaitDelay = dir, env, time.Minute
	var out, errs strings.Builder
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil {
		t.Fatalf("%s: %v\n%s%s", name, err, out.String(), errs.String())
	}
	return out.String()
}

// runBlock runs or writes a block. It returns the output, and reports whether the block is
// one that prints.
func (r *reader) runBlock(t *testing.T, b block) (out string, prints bool) {
	t.Helper()
	if b.file != "" {
		if err := os.WriteFile(filepath.Join(r.dir, b.file), []byte(b.text), 0o600); err != nil {
			t.Fatal(err)
		}
		return "", false
	}
	for _, s := range storages {
		if strings.Contains(b.text, s.word) && !r.uses[s] {
			s.useFor(t, r)
			r.uses[s] = true
		}
	}
	switch b.lang {
	case "sh":
		if _, err := os.Stat(filepath.Join(zookeeperTools, "zkCli.sh")); err != nil && strings.Contains(b.text, "zkCli.sh") {
			harness.SkipOrFail(t, "zkCli.sh is not installed")
		}
		return r.run(t, r.dir, r.env, "bash", "-euc", b.text), true
	case "python":
		return r.python(t, b.text), true
	case "go":
		return r.golang(t, b.text), true
	case "crontab":
		r.crontab(t, b.text)
	case "ini":
		unitSettings(t, b.text)
	default:
		t.Errorf("line %d: no test runs a block of %q", b.line, b.lang)
	}
	return "", false
}

func (r *reader) python(t *testing.T, text string) string {
	t.Helper()
	modules := "sys"
	if strings.Contains(text, "kazoo") {
		modules = "kazoo"
	}
	harness.Python(t, modules) // skips the test if a module is missing
	return r.run(t, r.dir, r.env, harness.SystemPython, "-c", text)
}

// golang runs a program or a test in the module of this test, which has the modules that
// the code imports.
func (r *reader) golang(t *testing.T, text string) string {
	t.Helper()
	if strings.HasPrefix(text, "package main\n") {
		path := filepath.Join(r.dir, "main.go")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return r.run(t, "", os.Environ(), "go", "run", path)
	}
	path := filepath.Join(r.dir, "guide_test.go")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return r.run(t, "", os.Environ(), "go", "test", "-count=1", path)
}

// crontab runs the zklock command of each line with another program, on the local server, so
// zklock checks its flags.
func (r *reader) crontab(t *testing.T, text string) {
	t.Helper()
	line := regexp.MustCompile(`^(?:\S+ +){5}(?:[A-Z_]+=\S+ +)*(zklock run .* --) \S+.*$`)
	for l := range strings.Lines(text) {
		m := line.FindStringSubmatch(strings.TrimSpace(l))
		if m == nil {
			t.Errorf("this is not a line of a crontab that runs zklock: %s", l)
			continue
		}
		short := regexp.MustCompile(`--hold-at-least \S+`).ReplaceAllString(m[1], "--hold-at-least 1ms")
		r.run(t, r.dir, r.env, "sh", "-c", short+" true")
	}
}

// unitSettings checks that the packaged unit knows the settings.
func unitSettings(t *testing.T, text string) {
	t.Helper()
	unit, err := os.ReadFile("../../packaging/systemd/zklock-once@.service")
	if err != nil {
		t.Fatal(err)
	}
	for l := range strings.Lines(text) {
		key, _, ok := strings.Cut(strings.TrimSpace(l), "=")
		if !ok || !strings.Contains(string(unit), key) {
			t.Errorf("the unit knows no %s", key)
		}
	}
}

func TestGuideCommandsPrintDocumentedOutput(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(docs, "*.md"))
	if err != nil || len(files) < 10 {
		t.Fatalf("%d guides, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".md"), func(t *testing.T) {
			r := newReader(t)
			out, printed := "", false
			for _, b := range guideBlocks(t, filepath.Base(file)) {
				if b.lang != "text" {
					out, printed = r.runBlock(t, b)
					continue
				}
				if !printed {
					t.Errorf("line %d: no command before this output", b.line)
				} else if got, want := trimLines(out), trimLines(b.text); got != want {
					t.Errorf("line %d: the command printed\n%s\nwant\n%s", b.line, got, want)
				}
			}
		})
	}
}

// TestGuidesAreListed checks that the table of guides lists every guide.
func TestGuidesAreListed(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(docs, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	index, err := os.ReadFile(filepath.Join(docs, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if name := filepath.Base(file); name != "README.md" && !strings.Contains(string(index), "]("+name+")") {
			t.Errorf("%s is not in the table", name)
		}
	}
}
