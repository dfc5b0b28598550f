package tls

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/zklock/zklock/test/jvm"
	"github.com/zklock/zklock/test/zkreal"
)

//go:embed java/TlsPeer.java
var javaPeer embed.FS

//go:embed python/kazoo_tls.py
var kazooPeer string

// systemPython has Debian's kazoo; the python3 in the path may be another one.
const systemPython = "/usr/bin/python3"

// compiled compiles the Java program once for a test binary.
var compiled = sync.OnceValues(func() (classpath string, err error) {
	dir, err := os.MkdirTemp("", "tls-")
	if err != nil {
		return "", err
	}
	classpath, err = jvm.Classpath("zookeeper", "zookeeper-jute", "netty-handler", "netty-transport", "netty-codec", "netty-resolver", "slf4j-api", "slf4j-simple", dir)
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	if err := os.CopyFS(dir, javaPeer); err != nil {
		return "", err
	}
	return classpath, jvm.Compile(context.Background(), classpath, dir, filepath.Join(dir, "java", "TlsPeer.java"))
})

// Java returns the command that runs the Java program. The test is skipped
// where Java or its libraries are missing.
func Java(tb testing.TB, args ...string) *exec.Cmd {
	tb.Helper()
	classpath, err := compiled()
	if errors.Is(err, jvm.ErrNotInstalled) {
		zkreal.SkipOrFail(tb, err.Error())
	}
	if err != nil {
		tb.Fatal(err)
	}
	cmd, err := jvm.Command(classpath, "TlsPeer", args...)
	if err != nil {
		tb.Fatal(err)
	}
	return cmd
}

// Kazoo returns the command that runs the Python program. The test is skipped
// where kazoo is missing.
func Kazoo(tb testing.TB, args ...string) *exec.Cmd {
	tb.Helper()
	if out, err := exec.Command(systemPython, "-c", "import kazoo").CombinedOutput(); err != nil {
		zkreal.SkipOrFail(tb, fmt.Sprintf("no kazoo for %s: %s", systemPython, out))
	}
	return exec.Command(systemPython, append([]string{"-c", kazooPeer}, args...)...)
}
