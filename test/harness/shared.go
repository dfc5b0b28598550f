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

// SharedServer is a test's root on the standalone server that the tests of a binary share.
type SharedServer struct {
	Addr   string // host:port
	Chroot string // an empty node for this test
}

// ConnectString returns the address with the chroot.
func (s SharedServer) ConnectString() string { return s.Addr + s.Chroot }

// sharedServer starts at the first call of Shared. Main ends it.
type sharedServer struct {
	inMain atomic.Bool
	roots  atomic.Int64
	once   sync.Once // its function sets the fields below
	node   *Server
	err    error
}

var shared sharedServer

// Shared returns the standalone server that the tests of this binary share, with a new node as
// the test's root. The first call starts the server. The test must not stop the server. The
// package's TestMain must call [Main].
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

// createNode creates a znode in a new session.
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

// end ends the server after all tests.
func (s *sharedServer) end() {
	s.once.Do(func() {}) // orders the reads below after start's writes
	if s.node != nil {
		s.node.Kill()
	}
}

// Main runs a package's tests, ends the shared server, removes the scratch folder, and prints the
// number of skipped tests. In a process that [StartEmbedded] started, Main runs the server
// instead. Its result is for [os.Exit]:
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
