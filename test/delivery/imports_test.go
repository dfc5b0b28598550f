package delivery

import (
	"bufio"
	"bytes"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/zklock/zklock"

// TestForbiddenImports checks that no package depends on one that its users do not need.
func TestForbiddenImports(t *testing.T) {
	forbidden := []struct{ from, to, why string }{
		{"", "/zkserver", "a lock library contains no server; only tests import it"},
		{"", "/zktest", "only tests import zktest"},
		{"", "/zkui", "only programs that mount the page import it"},
		{"", "net/http", "a lock library contains no web server"},
		{"", "/inspect", "programs that lock do not need the tools that show locks"},
		{"/inspect", "/zkui", "the page uses inspect"},
		{"/inspect", "net/http", "inspect has no web page"},
		{"/inspect", "/zkserver", "inspect reads any ZooKeeper server"},
		{"/zkui", "/zkserver", "the page is a client of any server"},
		{"/zkui", "/zktest", "only tests import zktest"},
		{"/zk", "/zkserver", "client and server share only internal/wire"},
		{"/zk", "/internal/tree", "client and server share only internal/wire"},
		{"/zk", "/internal/queue", "the client is independent of locks"},
		{"/zk", "", "the client is independent of locks"},
		{"/zkserver", "/zk", "client and server share only internal/wire"},
		{"/zkserver", "/internal/session", "client and server share only internal/wire"},
		{"/zkserver", "", "the server is independent of locks"},
		{"/zkserver", "/zktest", "only tests import zktest"},
		{"/internal/tree", "/internal/wal", "the tree does no I/O"},
		{"/internal/tree", "net", "the tree does no I/O"},
		{"/internal/queue", "/internal/wire", "the queue does not know the wire format"},
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

func TestInternalPackagesDoNotDependOnRoot(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}}{{range .Deps}} {{.}}{{end}}`, module+"/internal/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := 0
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if slices.Contains(fields[1:], module) {
			t.Errorf("%s depends on the root package", fields[0])
		}
		packages++
	}
	if packages == 0 {
		t.Error("no package under internal was listed")
	}
}

// TestRootModuleDependsOnlyOnSys checks that the root module adds no other module to the
// go.sum of its users.
func TestRootModuleDependsOnlyOnSys(t *testing.T) {
	for dep := range imports(t, "./...") {
		first, _, _ := strings.Cut(dep, "/")
		if strings.Contains(first, ".") && !strings.HasPrefix(dep, module) && !strings.HasPrefix(dep, "golang.org/x/sys/") && !strings.HasPrefix(dep, "vendor/") {
			t.Errorf("the root module depends on %s; the standard library and golang.org/x/sys are all it may", dep)
		}
	}
}

// imports returns the dependencies of the packages that match a pattern.
func imports(t *testing.T, pattern string) map[string]bool {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps", pattern)
	cmd.Dir = "../.." // the root module
	out, err := cmd.Output()
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
