package interop

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/zklock/zklock/test/zkreal"
)

//go:embed python/kazoo_peer.py
var kazooPeer string

// systemPython has Debian's kazoo; the python3 in the path may be another one.
const systemPython = "/usr/bin/python3"

// Kazoo starts a kazoo client of the server at addr (a connection string), and
// ends it in the test's cleanup. The test is skipped where kazoo is missing.
func Kazoo(tb testing.TB, addr string) *Peer {
	tb.Helper()
	return kazooFor(tb, addr, SessionTimeout)
}

// kazooFor is the same with a session of another timeout.
func kazooFor(tb testing.TB, addr string, session time.Duration) *Peer {
	tb.Helper()
	if _, err := os.Stat(systemPython); err != nil {
		zkreal.SkipOrFail(tb, "no "+systemPython)
	}
	if out, err := exec.Command(systemPython, "-c", "import kazoo").CombinedOutput(); err != nil {
		zkreal.SkipOrFail(tb, fmt.Sprintf("no kazoo for %s: %s", systemPython, out))
	}
	cmd := exec.Command(systemPython, "-c", kazooPeer, addr, fmt.Sprint(session.Seconds()))
	p, err := startPeer("kazoo", cmd)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(p.Kill)
	return p
}
