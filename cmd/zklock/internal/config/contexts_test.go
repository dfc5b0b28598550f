package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
)

func TestPlace(t *testing.T) {
	for _, tt := range []struct{ xdg, home, want string }{
		{"", "", ""}, {"", "relative", ""}, {"relative", "", ""},
		{"", "/home/ann", "/home/ann/.config/zklock/config.yaml"},
		{"/etc/xdg", "/home/ann", "/etc/xdg/zklock/config.yaml"},
		{"relative", "/home/ann", "/home/ann/.config/zklock/config.yaml"},
	} {
		got := ContextPath(func(key string) string { return map[string]string{"XDG_CONFIG_HOME": tt.xdg, "HOME": tt.home}[key] })
		if got != tt.want {
			t.Errorf("XDG_CONFIG_HOME=%q HOME=%q: %q, want %q", tt.xdg, tt.home, got, tt.want)
		}
	}
}

// TestSaveAndLoad also checks that no other user may read the file.
func TestSaveAndLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "config.yaml")
	f, err := Load(path, false)
	if err != nil || f.Current != LocalContext || len(f.Contexts) != 0 {
		t.Fatalf("%+v, %v", f, err)
	}
	if _, err := Load(path, true); !errors.Is(err, fs.ErrNotExist) || !errors.Is(err, ErrContexts) {
		t.Errorf("a file that must be there: %v", err)
	}
	for range 2 { // a new file, and then an existing one
		err := ChangeContexts(path, false, func(changed *ContextFile) error {
			changed.Contexts["prod"] = Context{"servers": "zk1:2181,zk2:2181/locks", "session-timeout": "10s", "tls-ca": "/a b/ca.pem"}
			changed.Contexts["test.1"] = Context{"servers": "[::1]:2181"}
			changed.Current = "prod"
			f = changed
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	again, err := Load(path, true)
	if err != nil || !reflect.DeepEqual(f, again) {
		t.Errorf("%+v, %v; want %+v", again, err, f)
	}
	if names := again.Names(); !reflect.DeepEqual(names, []string{"local", "prod", "test.1"}) {
		t.Errorf("names %v", names)
	}
	info, err := os.Stat(path)
	if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 1 {
		t.Errorf("%d files are left, %v", len(left), err)
	}
}

// TestSaveKeepsLink checks that a symbolic link to the settings is kept.
func TestSaveKeepsLink(t *testing.T) {
	dir := t.TempDir()
	real, link := filepath.Join(dir, "real.yaml"), filepath.Join(dir, "link.yaml")
	f := &ContextFile{Path: real, Current: LocalContext, Contexts: map[string]Context{}}
	if err := f.save(); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, link); err != nil {
		t.Skip(err)
	}
	f.Path, f.Contexts["a"] = link, Context{"servers": "h:1"}
	if err := f.save(); err != nil {
		t.Fatal(err)
	}
	if got, err := Load(real, true); err != nil || len(got.Contexts) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link is a file now: %v", err)
	}
}

// TestErrorsOfContextFiles checks that an error names the file, and suggests a setting.
func TestErrorsOfContextFiles(t *testing.T) {
	for text, want := range map[string]string{
		"contexts:\n  prod:\n    severs: a:1\n":                 `"severs" is not a setting of a context; did you mean servers?`,
		"contexts:\n  prod:\n    password: x\n    servers: a\n": `"password" is not a setting of a context`,
		"contexts:\n  prod: {}\n":                               "names no servers",
		"contexts:\n  local:\n    servers: a:1\n":               "local server",
		"contexts:\n  a b:\n    servers: a:1\n":                 "is not a context name",
		"contexts:\n  \"\\e[2J\":\n    servers: a:1\n":          `"\x1b[2J" is not a context name`,
		"curent: prod\n":                                        "field curent not found",
		"- a\n":                                                 "cannot unmarshal",
		"a: [\n":                                                "line 1",
		strings.Repeat("#", 2<<20):                              "larger than 1048576 bytes",
	} {
		path := filepath.Join(t.TempDir(), "c.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Load(path, true)
		if !errors.Is(err, ErrContexts) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%.60q: %v, want %s", text, err, want)
		}
	}
	if _, err := Load(t.TempDir(), true); !errors.Is(err, ErrContexts) {
		t.Errorf("a directory: %v", err)
	}
}

// TestWritableByOthersIsRefused checks a file that other users can change.
func TestWritableByOthersIsRefused(t *testing.T) {
	if !permissions {
		t.Skip("modes say nothing here")
	}
	path := filepath.Join(t.TempDir(), "c.yaml")
	for mode, good := range map[fs.FileMode]bool{0o600: true, 0o644: true, 0o664: false, 0o646: false} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(path, true); (err == nil) != good {
			t.Errorf("mode %04o: %v", mode, err)
		}
	}
}

// TestFilesOfOtherUsersAreRefused checks that a file of another user is not read, and that a link
// of another user lets no file of this user be replaced.
func TestFilesOfOtherUsersAreRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to make a file another user's")
	}
	dir := t.TempDir()
	path, link := filepath.Join(dir, "c.yaml"), filepath.Join(dir, "link.yaml")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if err := os.Lchown(link, 12345, -1); err != nil {
		t.Fatal(err)
	}
	f := &ContextFile{Path: link, Current: LocalContext, Contexts: map[string]Context{"a": {"servers": "h:1"}}}
	if err := f.save(); !errors.Is(err, ErrContexts) || !strings.Contains(err.Error(), "symbolic link of user 12345") {
		t.Errorf("a link: %v", err)
	}
	if text, err := os.ReadFile(path); err != nil || len(text) > 0 {
		t.Errorf("what the link leads to says %q, %v", text, err)
	}
	if _, err := Load(link, true); !errors.Is(err, ErrContexts) || !strings.Contains(err.Error(), "symbolic link of user 12345") {
		t.Errorf("reading through a link: %v", err)
	}
	if err := os.Chown(path, 12345, -1); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path, true); !errors.Is(err, ErrContexts) || !strings.Contains(err.Error(), "belongs to user 12345") {
		t.Errorf("a file: %v", err)
	}
}

func TestGet(t *testing.T) {
	f := &ContextFile{Path: "/f", Contexts: map[string]Context{"prod": {"servers": "a:1"}}}
	if c, err := f.Get("prod"); err != nil || c["servers"] != "a:1" {
		t.Errorf("%v, %v", c, err)
	}
	if c, err := f.Get(LocalContext); err != nil || c != nil {
		t.Errorf("%v, %v", c, err)
	}
	_, err := f.Get("prd")
	if !errors.Is(err, ErrContexts) || !strings.Contains(err.Error(), "did you mean prod?") {
		t.Error(err)
	}
	f.Path = "" // without a home directory
	if _, err := f.Get("prd"); !errors.Is(err, ErrContexts) || !strings.Contains(err.Error(), "HOME is not set") {
		t.Errorf("without a home directory: %v", err)
	}
}

// TestContextFileBehindLink checks a path with ".." after a symbolic link: a read finds the file
// that a change has written.
func TestContextFileBehindLink(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "data", "conf"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "data", "conf"), filepath.Join(dir, "conf")); err != nil {
		t.Skip("SKIPPED: cannot create a symbolic link: ", err)
	}
	path := dir + "/conf/../contexts.yaml"
	if err := ChangeContexts(path, false, func(f *ContextFile) error {
		f.Contexts["c"] = Context{"servers": "x:1"}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if f, err := Load(path, true); err != nil || len(f.Contexts) != 1 {
		t.Errorf("%+v, %v", f, err)
	}
}

// TestContextsChangedAtOnce checks that processes that change a file at the same time keep the
// changes of each other. flock distinguishes open files, not processes.
func TestContextsChangedAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "zklock", "config.yaml")
	const n = 20
	errs := make(chan error, n)
	for i := range n {
		go func() {
			errs <- ChangeContexts(path, false, func(f *ContextFile) error {
				f.Contexts[fmt.Sprint("c", i)] = Context{"servers": "x:1"}
				return nil
			})
		}()
	}
	for range n {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if f, err := Load(path, true); err != nil || len(f.Contexts) != n {
		t.Errorf("%+v, %v; want %d contexts", f, err, n)
	}
}
