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
