// Package zkconform_test runs the promises of package zk against Apache's
// ZooKeeper.
package zkconform_test

import (
	"testing"

	"github.com/zklock/zklock/internal/zkconform"
	"github.com/zklock/zklock/test/zkreal"
)

func TestAgainstZooKeeper(t *testing.T) {
	node := zkreal.Standalone(t, zkreal.Config{JavaFlags: []string{"-Dzookeeper.extendedTypesEnabled=true"}})
	zkconform.Run(t, zkconform.Env{Servers: node.Addr()})
}
