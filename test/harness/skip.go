package harness

import (
	"fmt"
	"os"
	"sync/atomic"
	"testing"
)

// requireEnv makes [SkipOrFail] fail the test.
const requireEnv = "ZKLOCK_REQUIRE_REAL"

// skipped counts the skipped tests of this process.
var skipped atomic.Int64

// NeedZooKeeper calls [SkipOrFail] if ZooKeeper is not installed.
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

// SkipOrFail skips the test because a dependency is not installed. With ZKLOCK_REQUIRE_REAL=1,
// it fails the test.
func SkipOrFail(tb testing.TB, reason string) {
	tb.Helper()
	if os.Getenv(requireEnv) == "1" {
		tb.Fatalf("%s=1, but %s", requireEnv, reason)
	}
	Skip(tb, reason)
}

// Skip skips the test for a reason that an installation cannot fix, such as missing privileges,
// and prints the reason.
func Skip(tb testing.TB, reason string) {
	tb.Helper()
	skipped.Add(1)
	// "go test" without -v hides the reason of a skip.
	fmt.Fprintf(os.Stderr, "*** SKIPPED %s: %s\n", tb.Name(), reason)
	tb.Skip("SKIPPED: " + reason)
}
