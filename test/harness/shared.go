package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/zklock/zklock/zk"
)

// SharedServer is a test's part of the one standalone server that the test
// binary's tests share.
type SharedServer struct {
	Addr   string // host:port
	Chroot string // an existing node, empty at first, of this test alone
}

// ConnectString is the address with the chroot, as clients take it.
func (s SharedServer) ConnectString() string { return s.Addr + s.Chroot }

// sharedServer starts at the first call of Shared and is ended by Main.
type sharedServer struct {
	inMain atomic.Bool
	roots  atomic.Int64
	once   sync.Once // its function sets the fields below
	node   *Server
	err    error
}

// shared is one for the process, which is the point of it.
var shared sharedServer

// Shared returns the standalone server that this test binary's tests share,
// started at the first call, with a node of the test's own as its root. The
// test may not harm the server. The package's TestMain must call [Main].
func Shared(tb testing.TB) SharedServer {
	tb.Helper()
	NeedZooKeeper(tb)
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	node, err := shared.start(ctx)
	if err != nil {
		tb.Fatal(err)
	}
	name := strings.Map(func(r rune) rune {
		if r == '/' || r < ' ' || r > '~' {
			return '_'
		}
		return r
	}, tb.Name())
	s := SharedServer{Addr: node.Addr(), Chroot: fmt.Sprintf("/%s-%d", name, shared.roots.Add(1))}
	if err := createNode(ctx, s.Addr, s.Chroot); err != nil {
		tb.Fatal(err)
	}
	return s
}

// createNode creates a znode in a session of its own.
func createNode(ctx context.Context, addr, path string) error {
	c, err := zk.Dial(ctx, addr, nil)
	if err != nil {
		return err
	}
	_, _, err = c.Create(ctx, path, nil, nil, zk.ModePersistent)
	return errors.Join(err, c.Close())
}

func (s *sharedServer) start(ctx context.Context) (*Server, error) {
	if !s.inMain.Load() {
		return nil, errors.New("harness: Shared needs a TestMain that calls harness.Main")
	}
	s.once.Do(func() {
		var dir string
		if dir, s.err = ScratchDir(); s.err == nil {
			s.node, s.err = startServer(ctx, ServerConfig{Extra: map[string]string{"maxSessionTimeout": "60000"}}, dir)
		}
	})
	return s.node, s.err
}

// end is called when no test runs any more.
func (s *sharedServer) end() {
	s.once.Do(func() {}) // orders the reads below after start's writes
	if s.node != nil {
		s.node.Kill()
	}
}

// Main runs a package's tests, ends the shared server, removes what the tests shared,
// and prints how many tests were skipped. In a process that [StartEmbedded] has
// started, Main runs the server instead. Its result is for [os.Exit]:
//
//	func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }
func Main(m *testing.M) int {
	if code, is := runEmbedded(); is {
		return code
	}
	shared.inMain.Store(true)
	code := m.Run()
	shared.end()
	if err := scratch.remove(); err != nil {
		fmt.Fprintf(os.Stderr, "harness: %v\n", err)
	}
	if n := skipped.Load(); n > 0 {
		fmt.Fprintf(os.Stderr, "*** %d tests SKIPPED: something they need is not installed (scripts/install-deps)\n", n)
	}
	return code
}
