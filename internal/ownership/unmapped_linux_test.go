package ownership

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestUnmappedUser(t *testing.T) {
	for _, tt := range []struct {
		name, uids, overflow string
		want                 int
	}{
		{"no namespace", "         0          0 4294967295\n", "65534\n", -1},
		{"one user", "0 1000 1\n", "65534\n", 65534},
		{"one user with the same number", "1000 1000 1\n", "65534\n", 65534},
		{"another overflow number", "0 1000 1\n", "99\n", 99},
		{"root is mapped", "0 0 1\n", "65534\n", -1},
		{"root is mapped to another number", "0 1000 1\n5 0 1\n", "65534\n", -1},
		{"the overflow number is mapped", "0 1000 1\n1 100000 65536\n", "65534\n", -1},
		{"few users", "0 1000 1\n1 100000 1000\n", "65534\n", 65534},
		{"not mapped yet", "", "65534\n", -1},
		{"no number", "0 1000 1\n", "nobody\n", -1},
		{"another form", "0 1000\n", "65534\n", -1},
	} {
		if got := unmappedIn(tt.uids, tt.overflow); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}

// TestParentsInUserNamespace runs TestInUserNamespace in a user namespace that does not map root,
// as in a rootless container.
func TestParentsInUserNamespace(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: needs root to make files of several users")
	}
	const user = 1000
	top, err := os.MkdirTemp("/tmp", "ownership")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(top) })
	own := filepath.Join(top, "own")
	exe := filepath.Join(top, "test")
	text, err := os.ReadFile(os.Args[0])
	must(t, err, os.Chmod(top, 0o755), os.Mkdir(own, 0o755), os.Chown(own, user, user), os.WriteFile(exe, text, 0o755))
	for dir, mode := range map[string]os.FileMode{"closed": 0o755, "sticky": 0o777 | os.ModeSticky, "open": 0o777, "group": 0o775} {
		must(t, os.Mkdir(filepath.Join(top, dir), 0o700), os.Chmod(filepath.Join(top, dir), mode),
			os.Symlink(own, filepath.Join(top, dir, "link")))
	}
	cmd := exec.Command(exe, "-test.run=^TestInUserNamespace$", "-test.v")
	cmd.Env = append(os.Environ(), "OWNERSHIP_TEST_DIR="+top)
	cmd.Dir = top
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: user, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: user, Size: 1}},
		Credential:  &syscall.Credential{Uid: 0, Gid: 0, NoSetGroups: true},
	}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EINVAL) {
		t.Skipf("SKIPPED: this system permits no user namespace: %v", err)
	}
	if err != nil || !strings.Contains(string(out), "--- PASS: TestInUserNamespace") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestInUserNamespace is the part of TestParentsInUserNamespace that runs in the namespace.
func TestInUserNamespace(t *testing.T) {
	top := os.Getenv("OWNERSHIP_TEST_DIR")
	if top == "" {
		t.Skip("TestParentsInUserNamespace runs this test")
	}
	info, err := os.Stat("/")
	must(t, err)
	if uid, other := Other(info); !other || uid != unmapped() {
		t.Fatalf("/ belongs to user %d, and unmapped is %d", uid, unmapped())
	}
	for path, says := range map[string]string{
		"own/home":     "",
		"closed/home":  "", // missing, and the caller cannot create it
		"sticky/home":  "",
		"open/home":    "chmod go-w",
		"group/home":   "chmod go-w",
		"closed/link":  "",
		"sticky/link":  "symbolic link of user", // any user could have created it
		"open/link/x":  "chmod go-w",
		"group/link/x": "chmod go-w",
	} {
		err := CheckParents(filepath.Join(top, path))
		if says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%s: %v, want %q", path, err, says)
		}
	}
	for path, refused := range map[string]bool{"own/home": false, "closed/link": false, "sticky/link": true} {
		if err := CheckLinks(filepath.Join(top, path)); (err != nil) != refused {
			t.Errorf("links of %s: %v", path, fmt.Sprint(err))
		}
	}
}
