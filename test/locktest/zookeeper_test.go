package locktest

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/zklock/zklock/test/harness"
)

// mostParallel is the number of tests that run at a time, because most of them wait.
const mostParallel = 4

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", fmt.Sprint(max(mostParallel, runtime.GOMAXPROCS(0)))); err != nil {
		panic(err)
	}
	os.Exit(harness.Main(m))
}

const (
	// timeout is the timeout of sessions that must survive stalls of the machine.
	timeout = 16 * time.Second
	// expiry is the timeout of sessions whose expiry a test waits for.
	expiry = 6 * time.Second
)

func TestZooKeeperClient(t *testing.T) {
	for _, release := range []string{"", harness.Release39} {
		t.Run(cmp.Or(release, "installed"), func(t *testing.T) {
			node := harness.StartServer(t, harness.ServerConfig{
				Release: release, JavaFlags: []string{"-Dzookeeper.extendedTypesEnabled=true"},
			})
			for _, c := range allCases() {
				t.Run(c.name, func(t *testing.T) { c.test(newFixture(t, ClientTarget{Servers: node.Addr()})) })
			}
		})
	}
}

// releases are the releases of ZooKeeper for the tests of locks. The first one is the release of
// Debian.
var releases = []string{"", harness.Release34, harness.Release39}

func TestZooKeeperLocks(t *testing.T) {
	for _, release := range releases {
		t.Run(cmp.Or(release, "installed"), func(t *testing.T) {
			node := harness.StartServer(t, harness.ServerConfig{Release: release, TickTime: time.Second})
			RunLocks(t, LockTarget{Servers: node.Addr(), SessionTimeout: timeout, Expiry: expiry})
		})
	}
}

func TestEnsembleLocks(t *testing.T) {
	for _, release := range releases {
		t.Run(cmp.Or(release, "installed"), func(t *testing.T) {
			cluster := harness.StartEnsemble(t, 3, harness.ServerConfig{Release: release, TickTime: time.Second})
			RunLocks(t, LockTarget{Servers: cluster.ConnectString(), SessionTimeout: timeout, Expiry: expiry})
		})
	}
}

// TestZooKeeperLocksOfEveryKind runs the tests of every kind of exclusive lock in every layout in
// parallel on one server.
func TestZooKeeperLocksOfEveryKind(t *testing.T) {
	node := harness.StartServer(t, harness.ServerConfig{TickTime: time.Second})
	for _, kind := range Kinds() {
		t.Run(kind.Name, func(t *testing.T) {
			t.Parallel()
			RunLocks(t, LockTarget{Servers: node.Addr(), SessionTimeout: timeout, Expiry: expiry, Kind: kind})
		})
	}
}
