package faults

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"testing"

	"github.com/zklock/zklock/test/harness"
)

var (
	duration = flag.Duration("faults.duration", 0, "how long faults are injected on each server; 0 stops when each fault has happened")
	seedFlag = flag.Uint64("faults.seed", 0, "seed of the faults; 0 picks one")
	totals   = flag.String("faults.totals", "", "file to which a row with the totals is appended")
	only     = flag.String("faults.only", "", "the only fault that happens, to examine it")
	kept     = flag.String("faults.judge", "", "directory with the histories of a round that failed; TestSingleServer judges them again")
)

// TestMain starts the processes that the tests need from this binary.
func TestMain(m *testing.M) {
	if runBurner() {
		os.Exit(0)
	}
	if code, is := runWorker(); is {
		os.Exit(code)
	}
	flag.Parse()
	if err := flag.Set("test.parallel", fmt.Sprint(max(mostParallel, runtime.GOMAXPROCS(0)))); err != nil {
		panic(err)
	}
	os.Exit(harness.Main(m))
}

// mostParallel is the number of tests that run at a time, because most of them wait.
const mostParallel = 4

// pickSeed returns the seed of the run, which it prints.
func pickSeed(t *testing.T) uint64 {
	t.Helper()
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64() >> 16
	}
	t.Logf("seed %d", seed)
	return seed
}

// keptDir returns a directory that is kept if the test fails.
func keptDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "zklock-faults-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the histories and the script are in %s", dir)
			return
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}
