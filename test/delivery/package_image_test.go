package delivery

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/zklock/zklock/test/harness"
)

// image is the last stage of the Dockerfile.
type image struct {
	from, user string
	env        []string
	argv       []string // entry point and command
}

func readImage(t *testing.T) (m image) {
	t.Helper()
	b, err := os.ReadFile("../../packaging/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word {
		case "FROM":
			m = image{from: rest}
		case "USER":
			m.user = rest
		case "ENV":
			m.env = append(m.env, strings.Fields(rest)...)
		case "ENTRYPOINT", "CMD":
			var words []string
			if err := json.Unmarshal([]byte(rest), &words); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			m.argv = append(m.argv, words...)
		}
	}
	return m
}

// TestImageRuns starts the image's command in a root directory with only the files of the
// image: the command, and directories of its user. There is no /proc, unlike in a container.
func TestImageRuns(t *testing.T) {
	if os.Getuid() != 0 {
		harness.SkipOrFail(t, "changing the root directory takes root")
	}
	m := readImage(t)
	if m.from != "scratch" {
		t.Errorf("the image is from %s", m.from)
	}
	uid, err := strconv.Atoi(strings.Split(m.user, ":")[0])
	if err != nil || uid == 0 {
		t.Fatalf("the image's user is %q", m.user)
	}
	b, err := os.ReadFile(harness.Command(t))
	if err != nil {
		t.Fatal(err)
	}
	// Other users cannot enter t.TempDir.
	root, err := os.MkdirTemp("", "image")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	for path, mode := range map[string]os.FileMode{"": 0o755, "usr": 0o755, "usr/bin": 0o755, "data": 0o700, "tmp": 0o700} {
		if err := os.MkdirAll(filepath.Join(root, path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(root, path), mode); err != nil {
			t.Fatal(err)
		}
		if mode == 0o700 {
			if err := os.Chown(filepath.Join(root, path), uid, uid); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.WriteFile(filepath.Join(root, m.argv[0]), b, 0o755); err != nil {
		t.Fatal(err)
	}
	argv := slices.Clone(m.argv)
	port := slices.Index(argv, ":2181")
	if port < 0 {
		t.Fatalf("the image starts %q", argv)
	}
	argv[port] = "127.0.0.1:0"
	c := command(t, harness.Command(t), argv[1:]...)
	c.Path, c.Args[0], c.Env, c.Dir = argv[0], argv[0], m.env, "/"
	c.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	stdout, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	start(t, c)
	line, err := bufio.NewReader(stdout).ReadString('\n')
	address, ok := strings.CutPrefix(strings.TrimSpace(line), "serving at ")
	if err != nil || !ok {
		t.Fatalf("the command printed %q, %v", line, err)
	}
	if out, err := command(t, harness.Command(t), "run", "--servers", address, "demo", "--", "true").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	terminate(t, c)
	if _, err := os.Stat(filepath.Join(root, "data/server")); err != nil {
		t.Errorf("its data are not where the volume is: %v", err)
	}
}
