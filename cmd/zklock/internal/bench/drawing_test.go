//go:build unix

package bench

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestDrawingToPipe checks that a file that is not regular is written to and not
// replaced.
func TestDrawingToPipe(t *testing.T) {
	name := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	drawn := make(chan string, 1)
	go func() { // ends when the drawing has closed the pipe
		f, err := os.Open(name)
		if err != nil {
			drawn <- err.Error()
			return
		}
		defer f.Close()
		b, _ := io.ReadAll(f)
		drawn <- string(b)
	}()
	d, err := newDrawing(name)
	if err == nil {
		err = d.write("a server", nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	d.discard()
	if got := <-drawn; !strings.HasPrefix(got, "<svg") && !strings.HasPrefix(got, "<?xml") {
		t.Errorf("the pipe got %.40q", got)
	}
	if info, err := os.Stat(name); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		t.Errorf("the pipe is %v, %v", info, err)
	}
}

// TestDrawingReplacesNoFileByLinkOfAnotherUser checks that another user's link cannot make the
// command replace a file.
func TestDrawingReplacesNoFileByLinkOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to make a link another user's")
	}
	dir := t.TempDir()
	link := filepath.Join(dir, "link.svg")
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("file", link); err != nil {
		t.Fatal(err)
	}
	if err := os.Lchown(link, 12345, -1); err != nil {
		t.Fatal(err)
	}
	if d, err := newDrawing(link); err == nil || !strings.Contains(err.Error(), "symbolic link of user 12345") {
		d.discard()
		t.Errorf("the link was followed: %v", err)
	}
}

// TestDrawingToPipeOfAnotherUserIsRefused: without a reader, opening it would wait forever.
func TestDrawingToPipeOfAnotherUserIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to make a pipe another user's")
	}
	name := filepath.Join(t.TempDir(), "pipe")
	if err := errors.Join(syscall.Mkfifo(name, 0o666), os.Chown(name, 12345, -1)); err != nil {
		t.Fatal(err)
	}
	refused := make(chan error, 1)
	go func() { // ends with newDrawing, or with the process if that waits for a reader
		d, err := newDrawing(name)
		d.discard()
		refused <- err
	}()
	select {
	case err := <-refused:
		if err == nil || !strings.Contains(err.Error(), "pipe of user 12345") {
			t.Errorf("error %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("the drawing waits for a reader")
	}
}

// TestOpenSameRefusesAnotherFile checks that a file that has taken the place of a device or a pipe
// is not written.
func TestOpenSameRefusesAnotherFile(t *testing.T) {
	null, err := os.Stat(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	f, err := openSame(os.DevNull, null)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	file, link := filepath.Join(t.TempDir(), "file"), filepath.Join(t.TempDir(), "link")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Symlink(os.DevNull, link)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{file, link} {
		if f, err := openSame(name, null); err == nil {
			t.Errorf("%s was opened", name)
			_ = f.Close()
		}
	}
}

// TestDrawingKeepsLink checks that a symbolic link is kept and the file that it points
// to is replaced.
func TestDrawingKeepsLink(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file.svg"), filepath.Join(dir, "link.svg")
	if err := os.WriteFile(file, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("file.svg", link); err != nil {
		t.Fatal(err)
	}
	d, err := newDrawing(link)
	if err == nil {
		err = d.write("a server", nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is %v, %v", info, err)
	}
	if b, err := os.ReadFile(file); err != nil || !strings.Contains(string(b), "<svg") {
		t.Errorf("the file has %.40q, %v", b, err)
	}
}

// TestDrawingToDirectoryIsRefused checks that a directory is refused before the run.
func TestDrawingToDirectoryIsRefused(t *testing.T) {
	if _, err := newDrawing(t.TempDir()); err == nil {
		t.Error("a directory is taken for a picture")
	}
}
