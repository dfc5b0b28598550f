// Package library adapts the Go lock libraries to lockwork.Library, as their documentation
// recommends to use them.
package library

import (
	"fmt"
	"strings"

	"github.com/zklock/zklock/bench/internal/lockwork"
)

// Names are the names that [New] accepts.
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
	return nil, fmt.Errorf("library: unknown name %q: use one of %s", name, strings.Join(Names, ", "))
}

// unsupported returns the error for a kind of lock that a library does not have.
func unsupported(w *lockwork.Work) error {
	return fmt.Errorf("%w: %s", lockwork.ErrUnsupported, w.Kind)
}
