package harness

import (
	"fmt"
	"os"
	"sync/atomic"
	"testing"
)

// requireEnv makes a missing ZooKeeper a failure.
const requireEnv = "ZKLOCK_REQUIRE_REAL"

// skipped counts the tests of this process that [SkipOrFail] skipped, for the
// line that [Main] prints.
var skipped atomic.Int64

// NeedZooKeeper skips the test if ZooKeeper servers cannot be started here, as [SkipOrFail]
// does.
func NeedZooKeeper(tb testing.TB) {
	tb.Helper()
	needRelease(tb, "")
}

// needRelease is [NeedZooKeeper] for a release of ZooKeeper. Nothing requires [Release34],
// because Debian can remove it.
func needRelease(tb testing.TB, release string) {
	tb.Helper()
	_, err := Classpath(zookeeperJars(release)...)
	if err == nil {
		_, err = JavaCommand("", serverClass)
	}
	switch {
	case err == nil:
	case release == Release34:
		Skip(tb, err.Error())
	default:
		SkipOrFail(tb, err.Error())
	}
}

// SkipOrFail skips the test for want of something outside the repository, or
// fails it if ZKLOCK_REQUIRE_REAL=1 says that this must not happen.
func SkipOrFail(tb testing.TB, reason string) {
	tb.Helper()
	if os.Getenv(requireEnv) == "1" {
		tb.Fatalf("%s=1, but %s", requireEnv, reason)
	}
	Skip(tb, reason)
}

// Skip skips the test loudly, for want of what no installation brings, as
// privileges that a container withholds.
func Skip(tb testing.TB, reason string) {
	tb.Helper()
	skipped.Add(1)
	// On stderr as well: "go test" without -v hides the reason of a skip.
	fmt.Fprintf(os.Stderr, "*** SKIPPED %s: %s\n", tb.Name(), reason)
	tb.Skip("SKIPPED: " + reason)
}
