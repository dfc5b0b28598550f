package inputfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadBoundsTheSize(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	text, info, err := Read(name, 5)
	if err != nil || string(text) != "12345" || info.Size() != 5 {
		t.Errorf("%q, %v, %v", text, info, err)
	}
	if _, _, err := Read(name, 4); err == nil || !strings.Contains(err.Error(), "larger than 4 bytes") {
		t.Errorf("a file that is too large: %v", err)
	}
	if _, _, err := Read(name+".none", 4); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	if _, _, err := Read(filepath.Dir(name), 4); err == nil || !strings.Contains(err.Error(), "is a directory") {
		t.Errorf("a directory: %v", err)
	}
}

func TestDescriptorRecognizesNames(t *testing.T) {
	for name, want := range map[string]bool{
		"/dev/stdin": true, "/dev/fd/0": true, "/dev/fd/63": true, "/proc/self/fd/11": true,
		"/dev/fd/": false, "/dev/fd/x": false, "/dev/fd/0/../x": false, "/dev/stdout": false, "/proc/1/fd/0": false, "-": false, "": false,
	} {
		if descriptor(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
}
