package interop

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/zklock/zklock/test/jvm"
	"github.com/zklock/zklock/test/zkreal"
)

//go:embed java/*.java
var curatorPeer embed.FS

// compiler compiles the Curator client once for a test binary, as javac takes
// longer than most tests.
type compiler struct {
	once sync.Once // its function sets the fields below
	dir  string    // of the classes; empty if nobody asked
	path string    // class path to run them
	err  error
}

// curator is one for the process; Main cleans it up.
var curator compiler

func (c *compiler) compile() error {
	c.once.Do(func() {
		if c.dir, c.err = os.MkdirTemp("", "curator-"); c.err != nil {
			return
		}
		c.path, c.err = jvm.Classpath("curator-recipes", "curator-framework", "curator-client", "zookeeper",
			"zookeeper-jute", "zookeeper-recipes-lock", "guava", "slf4j-api", "slf4j-nop", "jackson-databind", "jackson-core",
			"jackson-annotations", c.dir)
		if c.err != nil {
			return
		}
		if c.err = os.CopyFS(c.dir, curatorPeer); c.err != nil {
			return
		}
		sources, err := filepath.Glob(filepath.Join(c.dir, "java", "*.java"))
		if c.err = err; c.err != nil {
			return
		}
		c.err = jvm.Compile(context.Background(), c.path, c.dir, sources...)
	})
	return c.err
}

// remove is called when no test runs any more.
func (c *compiler) remove() {
	c.once.Do(func() {}) // orders the read below after compile's writes
	if c.dir != "" {
		_ = os.RemoveAll(c.dir)
	}
}

// Curator starts a Curator client of the server at addr (a connection string),
// and ends it in the test's cleanup. The test is skipped where Curator or the
// compiler is missing. The package's TestMain must call [Main].
func Curator(tb testing.TB, addr string) *Peer {
	tb.Helper()
	return curatorFor(tb, addr, SessionTimeout)
}

// curatorFor is the same with a session of another timeout.
func curatorFor(tb testing.TB, addr string, session time.Duration) *Peer {
	tb.Helper()
	err := curator.compile()
	if errors.Is(err, jvm.ErrNotInstalled) {
		zkreal.SkipOrFail(tb, err.Error())
	}
	if err != nil {
		tb.Fatal(err)
	}
	cmd, err := jvm.Command(curator.path, "CuratorPeer", addr, fmt.Sprint(session.Milliseconds()))
	if err != nil {
		tb.Fatal(err)
	}
	p, err := startPeer("curator", cmd)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(p.Kill)
	return p
}

// Main is [zkreal.Main] for packages that use [Curator]: it also removes the
// compiled client.
func Main(m *testing.M) int {
	code := zkreal.Main(m)
	curator.remove()
	return code
}
