package home

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
				if !errors.Is(err, ErrNone) || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("error %v, want ErrNone with %q", err, tt.err)
				}
				return
			}
			if err != nil || got != tt.want {
				t.Fatalf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

// TestPrepareFollowsNoLinkOfAnotherUser: what the link leads to is private and this
// user's, and not meant for a server.
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
		if err := Prepare(dir); !errors.Is(err, ErrNone) || !strings.Contains(err.Error(), "symbolic link of user 12345") {
			t.Errorf("%s: %v", dir, err)
		}
	}
	if names, err := os.ReadDir(private); err != nil || len(names) > 0 {
		t.Errorf("the directory has %v, %v", names, err)
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
	if err := Prepare(dir); !errors.Is(err, ErrNone) || !strings.Contains(err.Error(), "chmod 700") {
		t.Fatalf("an open directory gave %v", err)
	}
	lines := filepath.Join(t.TempDir(), "two\nlines")
	if err := Prepare(lines); !errors.Is(err, ErrNone) || !strings.Contains(err.Error(), "line break") {
		t.Fatalf("a name of two lines gave %v", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Prepare(file); !errors.Is(err, ErrNone) || !strings.Contains(err.Error(), "not a directory") {
		t.Fatalf("a file gave %v", err)
	}
	if err := Prepare(filepath.Join(file, "below")); !errors.Is(err, ErrNone) {
		t.Fatalf("a directory below a file gave %v", err)
	}
}
