//go:build unix

package process

import (
	"os"
	"os/exec"
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
