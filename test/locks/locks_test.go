// Package locks runs the lock library's tests against Apache ZooKeeper.
package locks

import (
	"os"
	"testing"
	"time"

	"github.com/zklock/zklock/internal/lockconform"
	"github.com/zklock/zklock/test/zkreal"
)

func TestMain(m *testing.M) { os.Exit(zkreal.Main(m)) }

func TestStandalone(t *testing.T) {
	node := zkreal.Standalone(t, zkreal.Config{})
	lockconform.Run(t, lockconform.Target{Servers: node.Addr(), SessionTimeout: 4 * time.Second})
}

func TestEnsemble(t *testing.T) {
	cluster := zkreal.Ensemble(t, 3, zkreal.Config{})
	lockconform.Run(t, lockconform.Target{Servers: cluster.ConnectString(), SessionTimeout: 4 * time.Second})
}

// TestKinds runs what every exclusive lock promises for all of them, in every
// layout, side by side on one server.
func TestKinds(t *testing.T) {
	node := zkreal.Standalone(t, zkreal.Config{})
	for _, kind := range lockconform.Kinds() {
		t.Run(kind.Name, func(t *testing.T) {
			t.Parallel()
			lockconform.Run(t, lockconform.Target{Servers: node.Addr(), SessionTimeout: 2 * time.Second, Kind: kind})
		})
	}
}
