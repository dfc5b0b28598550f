package ownership

import (
	"os"
	"path/filepath"
	"testing"
)

// TestMakeDirWithPathsOfWindows checks paths that begin at the working directory of a drive, and
// paths that Windows does not normalize.
func TestMakeDirWithPathsOfWindows(t *testing.T) {
	top := t.TempDir()
	t.Chdir(top)
	for path, want := range map[string]string{
		filepath.VolumeName(top) + "a":          "a",
		filepath.VolumeName(top) + `b\c`:        `b\c`,
		`\\?\` + filepath.Join(top, "d"):        "d",
		`\\?\` + filepath.Join(top, "e") + `\f`: `e\f`,
	} {
		if err := MakeDir(path, 0o700); err != nil {
			t.Errorf("MakeDir(%q): %v", path, err)
		}
		if info, err := os.Stat(filepath.Join(top, want)); err != nil || !info.IsDir() {
			t.Errorf("MakeDir(%q) made no %s: %v", path, want, err)
		}
	}
}
