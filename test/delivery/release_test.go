package delivery

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	modulelib "golang.org/x/mod/module"
	"golang.org/x/mod/zip"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/test/harness"
)

// version is the version of the next release.
const version = "v" + zklock.Version

// released returns the directories of the modules that scripts/release tags.
func released(t *testing.T) []string {
	t.Helper()
	script, err := os.ReadFile("../../scripts/release")
	if err != nil {
		t.Fatal(err)
	}
	list := regexp.MustCompile(`(?m)^RELEASED=\((.*)\)$`).FindSubmatch(script)
	if list == nil {
		t.Fatal("scripts/release lists no modules")
	}
	return strings.Fields(string(list[1]))
}

// goCommand runs go commands like a user without a clone: without go.work, with an empty
// module cache, and with a proxy that serves the modules of this tree.
type goCommand struct {
	t   *testing.T
	dir string
	env []string
}

// newGoCommand publishes the modules of this tree on a proxy in a directory. Other modules
// come from the module cache of this machine, or from its proxy.
func newGoCommand(t *testing.T) *goCommand {
	t.Helper()
	cache, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	others, err := exec.Command("go", "env", "GOPROXY").Output()
	if err != nil {
		t.Fatal(err)
	}
	proxy := t.TempDir()
	for _, dir := range released(t) {
		publish(t, proxy, dir)
	}
	home := t.TempDir()
	return &goCommand{t: t, dir: t.TempDir(), env: append(os.Environ(),
		"GOWORK=off", "GOTOOLCHAIN=local", "GOSUMDB=off", "GOENV=off", "GOMODCACHE="+filepath.Join(home, "mod"), "GOBIN="+filepath.Join(home, "bin"),
		"GOFLAGS=-modcacherw -trimpath -p=2", // -modcacherw lets the test remove the cache; with -trimpath, builds are cached
		"GOPROXY=file://"+filepath.ToSlash(proxy)+",file://"+filepath.ToSlash(strings.TrimSpace(string(cache)))+"/cache/download,"+strings.TrimSpace(string(others)))}
}

// publish adds the module in a directory of this tree to a proxy.
func publish(t *testing.T, proxy, dir string) {
	t.Helper()
	root := filepath.Join("../..", dir)
	path := module
	if dir != "." {
		path += "/" + dir
	}
	versions := filepath.Join(proxy, filepath.FromSlash(path), "@v")
	if err := os.MkdirAll(versions, 0o700); err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"list": version + "\n", version + ".mod": string(mod),
		version + ".info": `{"Version":"` + version + `","Time":"2026-01-02T03:04:05Z"}`,
	} {
		if err := os.WriteFile(filepath.Join(versions, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := os.Create(filepath.Join(versions, version+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if err := zip.CreateFromDir(out, modulelib.Version{Path: path, Version: version}, root); err != nil {
		t.Fatal(err)
	}
}

// run runs go with the arguments. It skips the test if another module is not in the cache.
func (g *goCommand) run(args ...string) {
	g.t.Helper()
	c := exec.CommandContext(g.t.Context(), "go", args...)
	c.Dir, c.Env = g.dir, g.env
	out, err := c.CombinedOutput()
	if err == nil {
		return
	}
	missing := regexp.MustCompile(`(\S+@\S+): (?:reading \S+:|Get "|module lookup disabled)`)
	for _, m := range missing.FindAllStringSubmatch(string(out), -1) {
		if !strings.Contains(m[1], module) {
			harness.Skip(g.t, "neither the module cache nor the proxy has "+m[1])
		}
	}
	g.t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
}

// binary returns the path of a program that go install built.
func (g *goCommand) binary(name string) string {
	for _, v := range g.env {
		if dir, ok := strings.CutPrefix(v, "GOBIN="); ok {
			return filepath.Join(dir, name)
		}
	}
	return name
}

// TestGoInstallBuildsCommand installs the command from a module proxy.
func TestGoInstallBuildsCommand(t *testing.T) {
	g := newGoCommand(t)
	g.run("install", module+"/cmd/zklock@"+version)
	for _, flag := range []string{"--version", "-V"} {
		out, err := command(t, g.binary("zklock"), flag).CombinedOutput()
		if want := "zklock " + zklock.Version + " "; err != nil || !strings.HasPrefix(string(out), want) {
			t.Errorf("zklock %s: %v, %q, want %q", flag, err, out, want)
		}
	}
}

// TestGoGetBuildsProgram builds a program outside this tree that uses the library and the
// modules for metrics, spans, and Kerberos.
func TestGoGetBuildsProgram(t *testing.T) {
	g := newGoCommand(t)
	program := `package main

import (
	"context"
	"fmt"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zkkerberos"
	"github.com/zklock/zklock/zkotel"
	"github.com/zklock/zklock/zkprom"
	"github.com/zklock/zklock/zkserver"
)

var _, _, _, _ = zkkerberos.New, zkotel.Hook, zkprom.NewLocks, zkserver.New

func main() {
	_, err := zklock.Dial(context.Background(), "", nil)
	fmt.Println(zklock.Version, err != nil)
}
`
	if err := os.WriteFile(filepath.Join(g.dir, "main.go"), []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	g.run("mod", "init", "example.com/program")
	g.run("get", module+"@"+version, module+"/zkkerberos@"+version, module+"/zkotel@"+version, module+"/zkprom@"+version)
	g.run("build", "-o", "program", ".")
	out, err := command(t, filepath.Join(g.dir, "program")).CombinedOutput()
	if want := zklock.Version + " true\n"; err != nil || string(out) != want {
		t.Errorf("the program printed %q, %v, want %q", out, err, want)
	}
}

// TestReleaseTagsModules checks that scripts/release refuses a tree that is not ready, tags
// nothing without --tag, and tags each module after the modules that it requires.
func TestReleaseTagsModules(t *testing.T) {
	clone := filepath.Join(t.TempDir(), "clone")
	if out, err := exec.Command("git", "clone", "-q", "../..", clone).CombinedOutput(); err != nil {
		harness.SkipOrFail(t, "the tree cannot be cloned: "+string(out))
	}
	sh := func(line string) (string, error) {
		c := exec.CommandContext(t.Context(), "sh", "-euc", line)
		c.Dir = clone
		c.Env = append(os.Environ(), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
		out, err := c.CombinedOutput()
		return string(out), err
	}
	expect := func(line string, fails bool, texts ...string) {
		t.Helper()
		out, err := sh(line)
		if (err != nil) != fails {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
		for _, text := range texts {
			if !strings.Contains(out, text) {
				t.Errorf("%s: no %q in\n%s", line, text, out)
			}
		}
	}
	expect("scripts/release --set 9.8.7 && sed -i.old -E 's/^## (Unreleased|[0-9.]+)$/## 9.8.7/' CHANGELOG.md && rm CHANGELOG.md.old", false)
	expect("scripts/release", true, "not committed")
	expect("git commit -qam 'set the version'", false)
	expect("scripts/release", false, "would tag v9.8.7\n")
	expect("test -z \"$(git tag --list '*v9.8.7')\"", false)

	for edit, text := range map[string]string{
		"sed -i.old 's/^## 9.8.7/## Unreleased/' CHANGELOG.md":              "CHANGELOG.md has no section",
		"sed -i.old 's/v9.8.7/v9.8.6/' zkotel/go.mod":                       "zkotel/go.mod names " + module + " v9.8.6",
		"sed -i.old 's/v9.8.7/v9.8.6/' go.work":                             "go.work names " + module + " v9.8.6",
		"echo 'replace " + module + " v9.8.7 => ../..' >>cmd/zklock/go.mod": "cmd/zklock/go.mod has a replace",
	} {
		expect(edit+" && git commit -qam 'break it'", false)
		expect("scripts/release --tag", true, text)
		expect("git reset -q --hard HEAD~ && git clean -fdq", false)
	}

	expect("scripts/release --tag", false, "git push --atomic origin v9.8.7 ")
	out, err := sh("git tag --list '*v9.8.7'")
	if got := len(strings.Fields(out)); err != nil || got != len(released(t)) {
		t.Errorf("%v, tags:\n%s", err, out)
	}
	expect("scripts/release", false, "This commit has the tags v9.8.7 ")
	expect("git tag -d cmd/zklock/v9.8.7 && scripts/release --tag", false, "tagged cmd/zklock/v9.8.7\n")
	expect("git commit -q --allow-empty -m later", false)
	expect("scripts/release --tag", true, "the tag v9.8.7 names an earlier commit")

	earlier := map[string]bool{}
	for _, dir := range released(t) {
		mod, err := os.ReadFile(filepath.Join("../..", dir, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^\s+`+module+`(?:/(\S+))? v`).FindAllSubmatch(mod, -1) {
			if required := string(m[1]); !earlier[filepath.Clean(required)] {
				t.Errorf("scripts/release tags %s before %q, which it requires", dir, required)
			}
		}
		earlier[filepath.Clean(dir)] = true
	}
}
