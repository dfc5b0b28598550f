// Package library has the lock libraries of Go that are compared, each as a
// lockwork.Library, as its documentation says to use it.
package library

import (
	"fmt"
	"strings"

	"github.com/zklock/zklock/bench/internal/lockwork"
)

// Names are those that [New] knows.
var Names = []string{"zklock", "go-zookeeper", "etcd", "redsync", "floor"}

// New returns the library with a name.
func New(name string) (lockwork.Library, error) {
	switch name {
	case "zklock":
		return zklockLibrary{}, nil
	case "go-zookeeper":
		return goZooKeeper{}, nil
	case "etcd":
		return etcd{}, nil
	case "floor":
		return floor{}, nil
	case "redsync":
		return redsyncLibrary{}, nil
	}
	return nil, fmt.Errorf("library: %q is none of %s", name, strings.Join(Names, ", "))
}

// unsupported says that a library has no lock of a kind.
func unsupported(w *lockwork.Work) error {
	return fmt.Errorf("%w: %s", lockwork.ErrUnsupported, w.Kind)
}
