package config

import (
	"os"
	"path/filepath"
	"testing"
)

func TestRaiseZxidKeepsTheHighest(t *testing.T) {
	path := ZxidFile(t.TempDir(), "prod")
	for _, step := range []struct{ zxid, want int64 }{
		{5, 5}, {1 << 62, 1 << 62}, {7, 1 << 62}, {0, 1 << 62},
	} {
		if err := RaiseZxid(path, step.zxid); err != nil {
			t.Fatal(err)
		}
		if got := LastZxid(path); got != step.want {
			t.Fatalf("after %d: %d, want %d", step.zxid, got, step.want)
		}
	}
	if info, err := os.Stat(path); err != nil || permissions && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); err != nil || len(left) != 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}

// TestInvalidZxidFileIsReplaced checks that invalid content counts as zxid 0.
func TestInvalidZxidFileIsReplaced(t *testing.T) {
	path := ZxidFile(t.TempDir(), "prod")
	for _, text := range []string{"", "x", "-5", "9223372036854775808", "1\n2", string(make([]byte, 1<<20))} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := LastZxid(path); got != 0 {
			t.Errorf("%.20q: %d", text, got)
		}
		if err := RaiseZxid(path, 3); err != nil || LastZxid(path) != 3 {
			t.Errorf("%.20q: not replaced: %v", text, err)
		}
	}
	dir := t.TempDir()
	if got := LastZxid(dir); got != 0 {
		t.Errorf("a directory: %d", got)
	}
	if err := RaiseZxid(filepath.Join(dir, "none", "zxid"), 3); err == nil {
		t.Error("no directory, and no error")
	}
}

// TestRaiseZxidReplacesLink checks that a symbolic link is replaced, and that its target is
// unchanged.
func TestRaiseZxidReplacesLink(t *testing.T) {
	dir := t.TempDir()
	target, path := filepath.Join(dir, "target"), ZxidFile(dir, "prod")
	if err := os.WriteFile(target, []byte("9\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, path); err != nil {
		t.Skip(err)
	}
	if err := RaiseZxid(path, 3); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(target); err != nil || string(text) != "9\n" || LastZxid(path) != 3 {
		t.Errorf("the target has %q, %v; the file %d", text, err, LastZxid(path))
	}
}
