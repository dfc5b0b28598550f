// Package zkreal starts Apache ZooKeeper servers, as Debian packages them, for
// tests. Everything else is an imitation; this is what the library must work
// with.
//
// Where ZooKeeper is not installed the tests that ask for it are skipped, and
// say so; with ZKLOCK_REQUIRE_REAL=1 in the environment they fail.
package zkreal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/zklock/zklock/test/jvm"
)

// requireEnv makes a missing ZooKeeper a failure.
const requireEnv = "ZKLOCK_REQUIRE_REAL"

// ErrNoLeader says that no server of an ensemble is its leader now.
var ErrNoLeader = errors.New("zkreal: the ensemble has no leader")

// skipped counts the tests of this process that [SkipOrFail] skipped, for the
// line that [Main] prints.
var skipped atomic.Int64

// freePorts is one for the process, as its tests share the loopback interface.
var freePorts ports

// Available returns nil if ZooKeeper servers can be started here; else what is
// missing.
func Available() error {
	_, err := jvm.Classpath("zookeeper", "zookeeper-jute", "slf4j-simple")
	if err != nil {
		return err
	}
	_, err = jvm.Command("", serverClass)
	return err
}

// Need skips the test if ZooKeeper is not installed, as [SkipOrFail] does.
func Need(tb testing.TB) {
	tb.Helper()
	if err := Available(); err != nil {
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

// Standalone starts a standalone server for this test, which the test's cleanup
// ends. Tests that need neither faults nor settings use [Shared], which costs
// no start.
func Standalone(tb testing.TB, cfg Config) *Node {
	tb.Helper()
	Need(tb)
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	n, err := startStandalone(ctx, cfg, tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(n.Kill)
	return n
}

func startStandalone(ctx context.Context, cfg Config, dir string) (*Node, error) {
	port, err := freePorts.take(1)
	if err != nil {
		return nil, err
	}
	n, err := newNode(cfg, 1, dir, "127.0.0.1", port[0], nil)
	if err != nil {
		return nil, err
	}
	if err := n.Start(); err != nil {
		return nil, err
	}
	if err := n.WaitServing(ctx); err != nil {
		n.Kill()
		return nil, err
	}
	return n, nil
}

// Place says where the servers of an ensemble live, for ensembles that are not
// on the loopback interface.
type Place struct {
	ClientHost string   // address for clients
	QuorumHost string   // address for the other servers
	Prefix     []string // command that runs the server, as "ip netns exec NAME"
}

// Ensemble starts size servers on the loopback interface, waits for a leader,
// and ends them in the test's cleanup.
func Ensemble(tb testing.TB, size int, cfg Config) *Cluster {
	tb.Helper()
	places := make([]Place, size)
	for i := range places {
		places[i] = Place{ClientHost: "127.0.0.1", QuorumHost: "127.0.0.1"}
	}
	return EnsembleAt(tb, places, cfg)
}

// EnsembleAt is [Ensemble] with one server at each place.
func EnsembleAt(tb testing.TB, places []Place, cfg Config) *Cluster {
	tb.Helper()
	Need(tb)
	c, err := newCluster(tb.TempDir(), places, cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.Kill)
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	for _, n := range c.Nodes {
		if err := n.Start(); err != nil {
			tb.Fatal(err)
		}
	}
	for _, n := range c.Nodes {
		if err := n.WaitServing(ctx); err != nil {
			tb.Fatal(err)
		}
	}
	return c
}

func newCluster(dir string, places []Place, cfg Config) (*Cluster, error) {
	numbers, err := freePorts.take(3 * len(places))
	if err != nil {
		return nil, err
	}
	members := make([]member, len(places))
	for i, p := range places {
		members[i] = member{id: i + 1, host: p.QuorumHost, quorumPort: numbers[3*i], electPort: numbers[3*i+1]}
	}
	c := &Cluster{}
	for i, p := range places {
		sub := filepath.Join(dir, fmt.Sprint(i+1))
		n, err := newNode(cfg, i+1, sub, p.ClientHost, numbers[3*i+2], members)
		if err != nil {
			return nil, err
		}
		n.prefix = p.Prefix
		c.Nodes = append(c.Nodes, n)
	}
	return c, nil
}
