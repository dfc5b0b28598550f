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

const (
	// timeout is that of sessions that must live through a machine that stands
	// still for a while.
	timeout = 16 * time.Second
	// expiry is that of sessions that a test lets expire.
	expiry = 6 * time.Second
)

func TestStandalone(t *testing.T) {
	node := zkreal.Standalone(t, zkreal.Config{TickTime: time.Second})
	lockconform.Run(t, lockconform.Target{Servers: node.Addr(), SessionTimeout: timeout, Expiry: expiry})
}

func TestEnsemble(t *testing.T) {
	cluster := zkreal.Ensemble(t, 3, zkreal.Config{TickTime: time.Second})
	lockconform.Run(t, lockconform.Target{Servers: cluster.ConnectString(), SessionTimeout: timeout, Expiry: expiry})
}

// TestKinds runs what every exclusive lock promises for all of them, in every
// layout, side by side on one server.
func TestKinds(t *testing.T) {
	node := zkreal.Standalone(t, zkreal.Config{TickTime: time.Second})
	for _, kind := range lockconform.Kinds() {
		t.Run(kind.Name, func(t *testing.T) {
			t.Parallel()
			lockconform.Run(t, lockconform.Target{Servers: node.Addr(), SessionTimeout: timeout, Expiry: expiry, Kind: kind})
		})
	}
}
