//go:build unix

package inputfile

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestReadRefusesSpecialFiles checks that Read does not wait for the other end of a named pipe.
func TestReadRefusesSpecialFiles(t *testing.T) {
	dir := t.TempDir()
	pipe, link, socket := filepath.Join(dir, "pipe"), filepath.Join(dir, "link"), filepath.Join(dir, "s")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("pipe", link); err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	for name, says := range map[string]string{
		pipe: "is a named pipe, not a regular file", link: "is a named pipe", "/dev/zero": "is a device", socket: "is a socket",
	} {
		if _, _, err := Read(name, 1<<10); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestReadAcceptsPipesByDescriptor checks that Read waits for the writer to close the pipe.
func TestReadAcceptsPipesByDescriptor(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	type result struct {
		text string
		err  error
	}
	read := make(chan result)
	name := fmt.Sprintf("/dev/fd/%d", r.Fd())
	go func() {
		text, _, err := Read(name, 1<<10)
		read <- result{string(text), err}
	}()
	for _, part := range []string{"one ", "two"} {
		if _, err := w.WriteString(part); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case got := <-read:
		t.Fatalf("read %q, %v before the end", got.text, got.err)
	default:
	}
	w.Close()
	if got := <-read; got.err != nil || got.text != "one two" {
		t.Errorf("read %q, %v", got.text, got.err)
	}
}
