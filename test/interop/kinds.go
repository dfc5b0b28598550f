package interop

import (
	"fmt"

	"github.com/zklock/zklock"
)

// clientOptions are the options of a client with the layout.
func clientOptions(layout string) (*zklock.Options, error) {
	// kazoo's clients fail when a container goes.
	opts := &zklock.Options{SessionTimeout: SessionTimeout, PersistentParents: true}
	switch layout {
	case "", "curator":
		return opts, nil
	}
	return nil, fmt.Errorf("unknown layout %q", layout)
}

// makeLock returns a lock of zklock's by kind: none (nil, guards nothing), mutex.
func makeLock(c *zklock.Client, kind, path string) (*zklock.Lock, error) {
	switch kind {
	case "none":
		return nil, nil
	case "mutex":
		return c.Mutex(path), nil
	}
	return nil, fmt.Errorf("unknown kind %q", kind)
}
