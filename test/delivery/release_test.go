package delivery

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
	moduleversion "golang.org/x/mod/module"
	"golang.org/x/mod/zip"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/test/harness"
)

// released are the folders of the modules of a release, each after those that it requires.
// scripts/release tags them in this order.
var released = []string{"", "zkprom", "zkotel", "cmd/zklock"}

// modulePath returns the path of the module in a folder of the repository.
func modulePath(folder string) string { return strings.TrimSuffix(module+"/"+folder, "/") }

// TestReleaseVersions checks that the modules require each other at the version that the
// library reports, which is the one that scripts/release tags.
func TestReleaseVersions(t *testing.T) {
	want := "v" + zklock.Version
	for _, folder := range append(released, "bench", "test") {
		mod := parseMod(t, filepath.Join("../..", folder, "go.mod"))
		if folder != "test" && folder != "bench" && len(mod.Replace) > 0 {
			t.Errorf("module %s: go install refuses modules with replace directives", mod.Module.Mod.Path)
		}
		for _, r := range mod.Require {
			if strings.HasPrefix(r.Mod.Path, module) && r.Mod.Version != want {
				t.Errorf("module %s requires %s, want %s", mod.Module.Mod.Path, r.Mod, want)
			}
		}
	}
}

func parseMod(t *testing.T, name string) *modfile.File {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	mod, err := modfile.Parse(name, text, nil)
	if err != nil {
		t.Fatal(err)
	}
	return mod
}

// moduleProxy returns a GOPROXY that has the modules of this tree as a release.
func moduleProxy(t *testing.T) string {
	t.Helper()
	dir, version := t.TempDir(), "v"+zklock.Version
	for _, folder := range released {
		source, path := filepath.Join("../..", folder), modulePath(folder)
		versions := filepath.Join(dir, path, "@v")
		if err := os.MkdirAll(versions, 0o755); err != nil {
			t.Fatal(err)
		}
		archive, err := os.Create(filepath.Join(versions, version+".zip"))
		if err != nil {
			t.Fatal(err)
		}
		if err := zip.CreateFromDir(archive, moduleversion.Version{Path: path, Version: version}, source); err != nil {
			t.Fatalf("module %s: %v", path, err)
		}
		if err := archive.Close(); err != nil {
			t.Fatal(err)
		}
		mod, err := os.ReadFile(filepath.Join(source, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{
			"list":            version + "\n",
			version + ".info": fmt.Sprintf(`{"Version":%q}`, version),
			version + ".mod":  string(mod),
		} {
			if err := os.WriteFile(filepath.Join(versions, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	return "file://" + dir
}

// user runs Go commands as somebody does who knows only the release.
type user struct {
	t   *testing.T
	env []string
}

func newUser(t *testing.T) user {
	t.Helper()
	out, err := exec.Command("go", "env", "-json", "GOMODCACHE", "GOPROXY").Output()
	if err != nil {
		t.Fatal(err)
	}
	var machine struct{ GOMODCACHE, GOPROXY string }
	if err := json.Unmarshal(out, &machine); err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	return user{t, append(os.Environ(),
		"GOWORK=off", "GOTOOLCHAIN=local", "GOFLAGS=-modcacherw -trimpath", "GOSUMDB=off",
		"GOBIN="+filepath.Join(home, "bin"),
		"GOMODCACHE="+filepath.Join(home, "mod"),
		// What this machine has of other modules, it need not download again.
		"GOPROXY="+moduleProxy(t)+",file://"+filepath.Join(machine.GOMODCACHE, "cache/download")+","+machine.GOPROXY,
	)}
}

// bin is where go install puts commands.
func (u user) bin(name string) string {
	for _, e := range u.env {
		if dir, ok := strings.CutPrefix(e, "GOBIN="); ok {
			return filepath.Join(dir, name)
		}
	}
	return name
}

// run runs a command in dir and returns its output. It skips the test if a module of others
// is not to be had.
func (u user) run(dir, name string, args ...string) string {
	u.t.Helper()
	c := exec.CommandContext(u.t.Context(), name, args...)
	c.Dir, c.Env = dir, u.env
	out, err := c.CombinedOutput()
	if err == nil {
		return string(out)
	}
	for line := range strings.Lines(string(out)) {
		if (strings.Contains(line, "dial tcp") || strings.Contains(line, "lookup disabled")) && !strings.Contains(line, module) {
			harness.Skip(u.t, "a module is neither in the module cache nor to be downloaded: "+strings.TrimSpace(line))
		}
	}
	u.t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	return ""
}

// TestReleaseInstalls installs the command from a module proxy, without the workspace that
// developers have.
func TestReleaseInstalls(t *testing.T) {
	u := newUser(t)
	u.run(t.TempDir(), "go", "install", module+"/cmd/zklock@v"+zklock.Version)
	if got, want := u.run(t.TempDir(), u.bin("zklock"), "--version"), "zklock "+zklock.Version+" "; !strings.HasPrefix(got, want) {
		t.Errorf("zklock --version prints %q, want %q first", got, want)
	}
}

// TestReleaseIsALibrary builds a program that gets each library from a module proxy.
func TestReleaseIsALibrary(t *testing.T) {
	u, dir := newUser(t), t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.com/program\n\ngo 1.26.0\n",
		"main.go": `package main

import (
	"context"
	"fmt"
	"log"
	"log/slog"

	"github.com/zklock/zklock"
	_ "github.com/zklock/zklock/inspect"
	_ "github.com/zklock/zklock/zkotel"
	_ "github.com/zklock/zklock/zkprom"
	"github.com/zklock/zklock/zkserver"
	_ "github.com/zklock/zklock/zkui"
)

func main() {
	srv, err := zkserver.New(&zkserver.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	ctx := context.Background()
	c, err := zklock.Dial(ctx, "embedded:2181", &zklock.Options{DialContext: srv.DialContext})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	err = zklock.Do(ctx, c.Mutex("demo"), func(_ context.Context, h *zklock.Hold) error {
		fmt.Println("held:", h.Err() == nil)
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
}
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	get := []string{"get"}
	for _, folder := range released {
		get = append(get, modulePath(folder)+"@v"+zklock.Version)
	}
	u.run(dir, "go", get[:len(get)-1]...) // not the command
	if got := u.run(dir, "go", "run", "."); got != "held: true\n" {
		t.Errorf("the program printed %q", got)
	}
}

// TestReleaseScriptRefuses checks that scripts/release tags nothing if the tree is not ready.
func TestReleaseScriptRefuses(t *testing.T) {
	if exec.Command("git", "-C", "../..", "rev-parse").Run() != nil {
		harness.Skip(t, "the tree is not a git repository")
	}
	dir := filepath.Join(t.TempDir(), "clone")
	if err := run(exec.Command("git", "clone", "-q", "../..", dir)); err != nil {
		t.Fatal(err)
	}
	refused := func(want string) {
		t.Helper()
		out, err := exec.Command(filepath.Join(dir, "scripts/release"), "--push").CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("it said %s (%v), want %q", out, err, want)
		}
	}
	changelog := filepath.Join(dir, "CHANGELOG.md")
	if err := os.WriteFile(changelog, []byte("# Changelog\n\n## Unreleased\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	refused("not committed")
	commit := []string{"-C", dir, "-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-qam", "t"}
	if err := run(exec.Command("git", commit...)); err != nil {
		t.Fatal(err)
	}
	refused("has no section")
	if err := os.WriteFile(changelog, []byte("# Changelog\n\n## "+zklock.Version+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := run(exec.Command("git", commit...)); err != nil {
		t.Fatal(err)
	}
	if err := run(exec.Command("git", "-C", dir, "tag", "cmd/zklock/v"+zklock.Version)); err != nil {
		t.Fatal(err)
	}
	refused("exists")
}
