package local

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDir(t *testing.T) {
	type env map[string]string
	tests := []struct {
		name   string
		env    env
		uid    int
		passwd string
		want   string
		err    string
	}{
		{"a login", env{"HOME": "/home/ann"}, 1000, "", "/home/ann/.local/state/zklock", ""},
		{"XDG", env{"HOME": "/home/ann", "XDG_STATE_HOME": "/s"}, 1000, "", "/s/zklock", ""},
		{"relative XDG is ignored", env{"HOME": "/home/ann", "XDG_STATE_HOME": "s"}, 1000, "", "/home/ann/.local/state/zklock", ""},
		{"cron without HOME", env{}, 1000, "/home/ann", "/home/ann/.local/state/zklock", ""},
		{"no home at all", env{}, 1000, "", "", "user 1000 has no home directory; name servers with --servers"},
		{"XDG_RUNTIME_DIR means nothing", env{"XDG_RUNTIME_DIR": "/run/user/1000", "HOME": "/h"}, 1000, "", "/h/.local/state/zklock", ""},
		{"root", env{"HOME": "/root"}, 0, "/root", System, ""},
		{"root by sudo", env{"HOME": "/home/ann", "XDG_STATE_HOME": "/s", "SUDO_UID": "1000"}, 0, "/root", System, ""},
		{"ZKLOCK_HOME rules", env{"ZKLOCK_HOME": "/z/", "HOME": "/h", "XDG_STATE_HOME": "/s"}, 1000, "", "/z", ""},
		{"ZKLOCK_HOME rules for root", env{"ZKLOCK_HOME": "/z"}, 0, "", "/z", ""},
		{"relative ZKLOCK_HOME", env{"ZKLOCK_HOME": "z"}, 1000, "/h", "", "give an absolute path"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Dir(Who{
				Getenv: func(k string) string { return tt.env[k] },
				UID:    tt.uid,
				Passwd: func(int) string { return tt.passwd },
			})
			if tt.err != "" {
				if err == nil || !strings.HasPrefix(err.Error(), noDirectory) || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("error %v, want an error with %q", err, tt.err)
				}
				return
			}
			if err != nil || got != tt.want {
				t.Fatalf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

// TestHomeFindsLocalServerOfDirectory checks the directory of a local server, running or not. No
// other server may use its files.
func TestHomeFindsLocalServerOfDirectory(t *testing.T) {
	root := resolved(t.TempDir())
	own, other, link := filepath.Join(root, "own"), filepath.Join(root, "other"), filepath.Join(root, "link")
	for _, dir := range []string{filepath.Join(own, "data"), filepath.Join(other, "data"), filepath.Join(root, "free", "data")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for dir, text := range map[string]string{
		other:                       filepath.Join(root, "zklock-1", socketName) + "\n",
		filepath.Join(root, "text"): "a program's own file\n",
		filepath.Join(root, "name"): socketName + "\n",
		filepath.Join(root, "path"): filepath.Join(root, "another-socket") + "\n",
	} {
		if err := errors.Join(os.MkdirAll(filepath.Join(dir, "data"), 0o700),
			os.WriteFile(filepath.Join(dir, "socket"), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(own, link); err != nil {
		t.Skipf("no symbolic links: %v", err)
	}
	w := Who{UID: 1000, Getenv: func(k string) string { return map[string]string{"ZKLOCK_HOME": own}[k] }}
	for dir, want := range map[string]string{
		own: own, own + "/data": own, own + "/server": "", link: own, link + "/data": own,
		other: other, other + "/data": other, other + "/backup": "",
		root: "", filepath.Join(root, "free"): "", filepath.Join(root, "free", "data"): "", "": "",
		root + "/text": "", root + "/text/data": "", root + "/name/data": "", root + "/path/data": "",
	} {
		if got := Home(dir, w); got != want {
			t.Errorf("Home(%q) = %q, want %q", dir, got, want)
		}
	}
	w.Getenv = func(k string) string { return map[string]string{"ZKLOCK_HOME": link}[k] }
	if got := Home(filepath.Join(own, "data"), w); got != link {
		t.Errorf("with a link as ZKLOCK_HOME: %q, want %q", got, link)
	}
}

// TestHomeIgnoresFilesOfAnotherUser checks that another user, who may create files in a directory
// such as /tmp, cannot keep a server from a directory there.
func TestHomeIgnoresFilesOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: needs root to make a file another user's")
	}
	const other = 12345
	root := resolved(t.TempDir())
	w := Who{Getenv: func(string) string { return "" }}
	for name, create := range map[string]func(real, file string) error{
		"file": func(_, file string) error {
			text := filepath.Join(filepath.Dir(file), socketName) + "\n"
			return errors.Join(os.WriteFile(file, []byte(text), 0o644), os.Chown(file, other, -1))
		},
		"symbolic link": func(real, file string) error {
			return errors.Join(os.Symlink(real, file), os.Lchown(file, other, -1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			mine, public := filepath.Join(root, name, "mine"), filepath.Join(root, name, "public")
			socket := filepath.Join(mine, "socket")
			if err := errors.Join(os.MkdirAll(filepath.Join(mine, "data"), 0o700),
				os.MkdirAll(filepath.Join(public, "data"), 0o755),
				os.WriteFile(socket, []byte(filepath.Join(mine, socketName)+"\n"), 0o600),
				create(socket, filepath.Join(public, "socket"))); err != nil {
				t.Fatal(err)
			}
			for dir, want := range map[string]string{
				filepath.Join(mine, "data"): mine, public: "", filepath.Join(public, "data"): "",
			} {
				if got := Home(dir, w); got != want {
					t.Errorf("Home(%q) = %q, want %q", dir, got, want)
				}
			}
		})
	}
}

// TestPrepareFollowsNoLinkOfAnotherUser: the target of the link is a private directory of this
// user for another purpose.
func TestPrepareFollowsNoLinkOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to make a link another user's")
	}
	private, link := filepath.Join(t.TempDir(), "private"), filepath.Join(t.TempDir(), "link")
	if err := os.Mkdir(private, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(private, link); err != nil {
		t.Fatal(err)
	}
	if err := Prepare(link); err != nil {
		t.Errorf("a link of this user: %v", err)
	}
	if err := os.Lchown(link, 12345, -1); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{link, filepath.Join(link, "below")} {
		if err := Prepare(dir); err == nil || !strings.HasPrefix(err.Error(), noDirectory) || !strings.Contains(err.Error(), "symbolic link of user 12345") {
			t.Errorf("%s: %v", dir, err)
		}
	}
	if names, err := os.ReadDir(private); err != nil || len(names) > 0 {
		t.Errorf("the directory has %v, %v", names, err)
	}
}

// TestPrepareRefusesParentsOfOtherUsers: the owner of a parent directory can replace the
// directory with another one of this user.
func TestPrepareRefusesParentsOfOtherUsers(t *testing.T) {
	const other = 12345
	root := os.Geteuid() == 0
	mode := func(m os.FileMode) func(string) error {
		return func(dir string) error { return os.Chmod(dir, m) }
	}
	owner := func(uid int) func(string) error {
		return func(dir string) error { return os.Chown(dir, uid, -1) }
	}
	for _, test := range []struct {
		name  string
		apply func(parent string) error
		root  bool // only root can make it
		says  string
	}{
		{"as made", mode(0o755), false, ""},
		{"writable by all", mode(0o777), false, "chmod go-w"},
		{"writable by all, sticky", mode(0o777 | os.ModeSticky), false, ""},
		{"writable by another group", func(dir string) error {
			return errors.Join(os.Chown(dir, -1, other), os.Chmod(dir, 0o775))
		}, true, "chmod go-w"},
		{"writable by the group of this user", mode(0o775), true, ""},
		{"of another user", owner(other), true, "belongs to user 12345"},
		{"of another user, sticky", func(dir string) error {
			return errors.Join(os.Chown(dir, other, -1), os.Chmod(dir, 0o777|os.ModeSticky))
		}, true, "belongs to user 12345"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.root && !root {
				t.Skip("needs root to make a file another user's")
			}
			top := t.TempDir()
			parent, link := filepath.Join(top, "a"), filepath.Join(top, "link")
			if err := errors.Join(os.MkdirAll(filepath.Join(parent, "b"), 0o700), test.apply(parent), os.Symlink("a/../a/b", link)); err != nil {
				t.Fatal(err)
			}
			for _, dir := range []string{filepath.Join(parent, "home"), filepath.Join(parent, "b", "c", "home"),
				filepath.Join(link, "linked", "home"), filepath.Join(link, "linked", "home")} {
				err := Prepare(dir)
				if test.says == "" && err != nil || test.says != "" && (err == nil || !strings.HasPrefix(err.Error(), noDirectory) || !strings.Contains(err.Error(), test.says)) {
					t.Errorf("%s: %v, want %q", dir, err, test.says)
				}
				if _, err := os.Stat(dir); test.says != "" && err == nil {
					t.Errorf("%s was made", dir)
				}
			}
		})
	}
}

// TestPrepareRefusesLoopOfLinks checks links that point to each other.
func TestPrepareRefusesLoopOfLinks(t *testing.T) {
	loop := filepath.Join(t.TempDir(), "loop")
	if err := os.Symlink("loop", loop); err != nil {
		t.Fatal(err)
	}
	if err := Prepare(filepath.Join(loop, "home")); err == nil || !strings.HasPrefix(err.Error(), noDirectory) || !strings.Contains(err.Error(), "too many symbolic links") {
		t.Errorf("a loop gave %v", err)
	}
}

func TestPrepare(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b", "zklock")
	for range 2 {
		if err := Prepare(dir); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Fatalf("mode %v, %v, want 0700", info.Mode(), err)
	}
	if err := os.Chmod(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	if err := Prepare(dir); err == nil || !strings.HasPrefix(err.Error(), noDirectory) || !strings.Contains(err.Error(), "chmod 700") {
		t.Fatalf("an open directory gave %v", err)
	}
	lines := filepath.Join(t.TempDir(), "two\nlines")
	if err := Prepare(lines); err == nil || !strings.HasPrefix(err.Error(), noDirectory) || !strings.Contains(err.Error(), "line break") {
		t.Fatalf("a name of two lines gave %v", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Prepare(file); err == nil || !strings.HasPrefix(err.Error(), noDirectory) || !strings.Contains(err.Error(), "not a directory") {
		t.Fatalf("a file gave %v", err)
	}
	if err := Prepare(filepath.Join(file, "below")); err == nil || !strings.HasPrefix(err.Error(), noDirectory) {
		t.Fatalf("a directory below a file gave %v", err)
	}
}
