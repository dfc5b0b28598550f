//go:build unix

package process

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestCloseInheritedKeepsListedFiles(t *testing.T) {
	var files []*os.File
	for range 3 {
		f, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		files = append(files, f)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "INHERIT_CHILD=1")
	cmd.ExtraFiles = files
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	// Go can have opened files with the numbers 3 and 5 again. They were closed if 4 is the only
	// inherited one that is left.
	if got := strings.TrimSpace(string(out)); !strings.Contains(got, "4:true") {
		t.Errorf("open after Close(4): %s", got)
	}
	if strings.Contains(string(out), "5:true") {
		t.Errorf("an inherited descriptor is still open: %s", out)
	}
}

// TestInheritedFilesFindsAllDescriptors checks that InheritedFiles returns each inherited
// descriptor of a regular file, and none of a pipe or a terminal, whose content is gone once read.
func TestInheritedFilesFindsAllDescriptors(t *testing.T) {
	name := filepath.Join(t.TempDir(), "auth")
	if err := os.WriteFile(name, []byte("digest:ann:secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var fds []int
	for range 2 {
		fd, err := unix.Dup(int(f.Fd())) // without the flag
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		fds = append(fds, fd)
	}
	var pair [2]int
	if err := unix.Pipe(pair[:]); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pair[0])
	defer unix.Close(pair[1])
	names := []string{fmt.Sprintf("/dev/fd/%d", fds[0]), fmt.Sprintf("/dev/fd/%d", pair[0]), "/dev/fd/99999"}
	got := InheritedFiles(names)
	slices.Sort(got)
	if !slices.Equal(got, fds) {
		t.Errorf("the descriptors of %q are %v, want %v", names, got, fds)
	}
	if got := InheritedFiles(nil); len(got) > 0 {
		t.Errorf("no file has the descriptors %v", got)
	}
}

func TestCloseOnExecMarksDescriptor(t *testing.T) {
	var pair [2]int
	if err := unix.Pipe(pair[:]); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pair[0])
	defer unix.Close(pair[1])
	if !Inherited(pair[0]) {
		t.Fatal("a descriptor without the flag does not count as inherited")
	}
	CloseOnExec(pair[0])
	if Inherited(pair[0]) {
		t.Error("a marked descriptor would be inherited")
	}
}
