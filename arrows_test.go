package zklock_test

import (
	"bufio"
	"bytes"
	"os/exec"
	"strings"
	"testing"
)

const module = "github.com/zklock/zklock"

// TestArrows guards which package may import which: an arrow that is forbidden
// here would make users of one part carry, or depend on, another.
func TestArrows(t *testing.T) {
	forbidden := []struct{ from, to, why string }{
		{"", "/zkserver", "a lock library brings no server along; only tests import it"},
		{"", "/zktest", "only tests import zktest"},
		{"", "/zkui", "the page is for whoever mounts it"},
		{"", "net/http", "a lock library brings no web server along"},
		{"", "/internal/survey", "who looks at locks is not who takes them"},
		{"", "/internal/takeaway", "who takes locks away is not who takes them"},
		{"/internal/survey", "/zkui", "the page shows what the survey knows"},
		{"/internal/survey", "net/http", "the survey shows nothing itself"},
		{"/internal/survey", "/zkserver", "it looks at servers of any make"},
		{"/zkui", "/zkserver", "the page is a client, on servers of any make"},
		{"/zkui", "/zktest", "only tests import zktest"},
		{"", "/internal/herd", "experiments with locks are for the command; the library brings none along"},
		{"/zkserver", "/internal/herd", "experiments with locks are for the command"},
		{"/zktest", "/internal/herd", "experiments with locks are for the command"},
		{"/internal/herd", "/zkserver", "an experiment is a client, on servers of any make"},
		{"/internal/herd", "/zktest", "only tests import zktest"},
		{"/zk", "/zkserver", "client and server meet in internal/wire alone"},
		{"/zk", "/internal/tree", "client and server meet in internal/wire alone"},
		{"/zk", "/internal/queue", "the client knows nothing of locks"},
		{"/zk", "", "the client knows nothing of locks"},
		{"/zkserver", "/zk", "client and server meet in internal/wire alone"},
		{"/zkserver", "/internal/session", "client and server meet in internal/wire alone"},
		{"/zkserver", "", "the server knows nothing of locks"},
		{"/zkserver", "/zktest", "only tests import zktest"},
		{"/internal/tree", "/internal/wal", "the tree does no I/O"},
		{"/internal/tree", "net", "the tree does no I/O"},
		{"/internal/queue", "/internal/wire", "the queue speaks in its own terms"},
		{"/internal/queue", "net", "the queue does no I/O"},
		{"/internal/session", "net", "the session does no I/O"},
		{"/internal/wire", "net", "the codec does no network I/O"},
		{"/internal/jute", "/internal/wire", "the primitives know no messages"},
	}
	deps := map[string]map[string]bool{}
	for _, f := range forbidden {
		from, to := module+f.from, f.to
		if to == "" || to[0] == '/' {
			to = module + to
		}
		if deps[from] == nil {
			deps[from] = imports(t, from)
		}
		if deps[from][to] {
			t.Errorf("%s depends on %s: %s", from, to, f.why)
		}
	}
}

// TestDependencies keeps the root module free of what its users would have to
// carry in their go.sum.
func TestDependencies(t *testing.T) {
	for dep := range imports(t, "./...") {
		first, _, _ := strings.Cut(dep, "/")
		if strings.Contains(first, ".") && !strings.HasPrefix(dep, module) && !strings.HasPrefix(dep, "golang.org/x/sys/") && !strings.HasPrefix(dep, "vendor/") {
			t.Errorf("the root module depends on %s; the standard library and golang.org/x/sys are all it may", dep)
		}
	}
}

// imports returns what the packages depend on, themselves left out.
func imports(t *testing.T, pattern string) map[string]bool {
	t.Helper()
	out, err := exec.Command("go", "list", "-deps", pattern).Output()
	if err != nil {
		t.Fatalf("go list -deps %s: %v", pattern, err)
	}
	found := map[string]bool{}
	for s := bufio.NewScanner(bytes.NewReader(out)); s.Scan(); {
		if s.Text() != pattern {
			found[s.Text()] = true
		}
	}
	return found
}
