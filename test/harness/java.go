package harness

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// ErrNotInstalled reports a missing jar or Java tool, which its text names.
// scripts/install-deps installs them on Debian.
var ErrNotInstalled = errors.New("harness: not installed, run scripts/install-deps as root")

// compileTimeout limits one run of javac, which takes two seconds on an idle machine.
const compileTimeout = 10 * time.Minute

// jarDir is the directory of the jars in Debian.
const jarDir = "/usr/share/java"

// JavaProgram is a program in Java. [JavaProgram.Command] compiles it once for each test binary.
type JavaProgram struct {
	Sources fs.FS    // with the program's *.java files, in any folder
	Jars    []string // as for [Classpath]

	once sync.Once // its function sets the fields below
	path string    // the class path of the program
	err  error
}

// Command returns the command that runs class with the arguments. It skips the test if Java or
// a jar is missing. The package's TestMain must call [Main], which removes the classes.
func (p *JavaProgram) Command(tb testing.TB, class string, args ...string) *exec.Cmd {
	tb.Helper()
	p.once.Do(func() { p.path, p.err = p.compile() })
	var cmd *exec.Cmd
	err := p.err
	if err == nil {
		cmd, err = JavaCommand(p.path, class, args...)
	}
	if errors.Is(err, ErrNotInstalled) {
		SkipOrFail(tb, err.Error())
	}
	if err != nil {
		tb.Fatal(err)
	}
	return cmd
}

// compile compiles the sources into a scratch folder and returns the class path.
func (p *JavaProgram) compile() (path string, err error) {
	dir, err := ScratchDir()
	if err != nil {
		return "", err
	}
	if path, err = Classpath(append(p.Jars[:len(p.Jars):len(p.Jars)], dir)...); err != nil {
		return "", err
	}
	if err := os.CopyFS(dir, p.Sources); err != nil {
		return "", fmt.Errorf("harness: %w", err)
	}
	var sources []string
	err = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".java" {
			sources = append(sources, path)
		}
		return err
	})
	if err != nil {
		return "", fmt.Errorf("harness: %w", err)
	}
	return path, compileJava(context.Background(), path, dir, sources...)
}

// Classpath returns a class path. An entry without a slash, such as "zookeeper", names a jar of
// Debian. An entry with a slash is a path.
func Classpath(entries ...string) (string, error) {
	paths := make([]string, 0, len(entries))
	for _, entry := range entries {
		path := entry
		if !strings.ContainsRune(entry, filepath.Separator) {
			path = filepath.Join(jarDir, entry+".jar")
		}
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("%w: %s", ErrNotInstalled, path)
		}
		paths = append(paths, path)
	}
	return strings.Join(paths, ":"), nil
}

// releasesPath, followed by the number of a release, is the folder of its jars, which
// scripts/install-deps fills.
const releasesPath = "/usr/local/share/zklock-test/zookeeper-"

// zookeeperEnv names the environment variable with a folder of jars, from which tests start
// ZooKeeper instead of Debian's.
const zookeeperEnv = "ZKLOCK_ZOOKEEPER"

// zookeeperJars returns the entries for [Classpath] of a release of ZooKeeper's server and
// of its logger; the manifest of zookeeper.jar names the other jars. The manifest also names
// the zookeeper-jute.jar that Debian installed, so the one of the same release comes first.
func zookeeperJars(release string) []string {
	jars := []string{"slf4j-api", "slf4j-simple"}
	dir := os.Getenv(zookeeperEnv)
	if release != "" {
		dir = releasesPath + release
	}
	if dir == "" {
		return append(jars, "zookeeper-jute", "zookeeper")
	}
	jute := filepath.Join(dir, "zookeeper-jute.jar")
	if _, err := os.Stat(jute); err == nil { // 3.4 has it in zookeeper.jar
		jars = append(jars, jute)
	}
	return append(jars, filepath.Join(dir, "zookeeper.jar"))
}

// ZooKeeperClasspath returns the class path of the servers of a release, empty for the one
// that Debian installed. Like [NeedZooKeeper], it skips the test if they cannot start.
func ZooKeeperClasspath(tb testing.TB, release string) string {
	tb.Helper()
	needRelease(tb, release)
	path, err := Classpath(zookeeperJars(release)...)
	if err != nil {
		tb.Fatal(err)
	}
	return path
}

// JavaFlags returns the flags of a JVM with a small heap that starts quickly. A
// test's JVM lives for seconds, so the optimizing compiler and a parallel collector
// would cost more than they save.
func JavaFlags() []string {
	return []string{
		"-Xms32m", "-Xmx256m", "-Xss512k",
		"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Xshare:auto",
	}
}

// JavaCommand returns the command that runs class with [JavaFlags].
func JavaCommand(classpath, class string, args ...string) (*exec.Cmd, error) {
	java, err := exec.LookPath("java")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotInstalled, err)
	}
	return exec.Command(java, append(append(JavaFlags(), "-cp", classpath, class), args...)...), nil
}

// compileJava compiles the source files with javac into the directory dir.
func compileJava(ctx context.Context, classpath, dir string, sources ...string) error {
	javac, err := exec.LookPath("javac")
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotInstalled, err)
	}
	ctx, cancel := context.WithTimeout(ctx, compileTimeout)
	defer cancel()
	args := append([]string{
		"-J-XX:+UseSerialGC", "-J-XX:TieredStopAtLevel=1", "-J-Xmx256m",
		"-Xlint:all,-path,-processing,-classfile", "-Werror", "-proc:none", "-cp", classpath, "-d", dir,
	}, sources...)
	out, err := exec.CommandContext(ctx, javac, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("harness: javac %s: %w\n%s", strings.Join(sources, " "), err, out)
	}
	return nil
}
