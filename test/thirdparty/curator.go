package thirdparty

import (
	"embed"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/zklock/zklock/test/jvm"
	"github.com/zklock/zklock/test/zkreal"
)

//go:embed java/*.java
var curatorSources embed.FS

// compileCurator compiles the script of Curator into a directory of the test, and
// returns the class path to run it. The test is skipped where Curator or the
// compiler is missing.
func compileCurator(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	path, err := jvm.Classpath("curator-recipes", "curator-framework", "curator-client", "zookeeper",
		"zookeeper-jute", "guava", "slf4j-api", "slf4j-nop", "jackson-databind", "jackson-core",
		"jackson-annotations", dir)
	if err == nil {
		err = os.CopyFS(dir, curatorSources)
	}
	var sources []string
	if err == nil {
		sources, err = filepath.Glob(filepath.Join(dir, "java", "*.java"))
	}
	if err == nil {
		err = jvm.Compile(t.Context(), path, dir, sources...)
	}
	if errors.Is(err, jvm.ErrNotInstalled) {
		zkreal.SkipOrFail(t, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Curator runs the compiled script, the part that the arguments choose, against
// the server at addr, and returns its lines.
func Curator(t *testing.T, classpath, addr string, args ...string) []string {
	t.Helper()
	cmd, err := jvm.Command(classpath, "CuratorScript", append([]string{addr}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	return textLines(output(t, cmd))
}
