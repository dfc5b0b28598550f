package compat

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/test/harness"
)

// clientOptions returns the options of a client with the layout: curator (or empty), kazoo, mixed,
// latch, writelock, or containers, which is Curator's layout with parents that servers may delete.
func clientOptions(layout string) (*zklock.Options, error) {
	// kazoo's clients fail if a server deletes a container.
	opts := &zklock.Options{SessionTimeout: harness.PeerSessionTimeout, PersistentParents: true}
	switch layout {
	case "", "curator":
	case "containers":
		opts.PersistentParents = false
	case "kazoo":
		opts.Layout = zklock.KazooLayout()
	case "mixed":
		opts.Layout = zklock.MixedLayout()
	case "latch":
		opts.Layout = zklock.LatchLayout()
	case "writelock":
		opts.Layout = zklock.WriteLockLayout()
	default:
		return nil, fmt.Errorf("unknown layout %q", layout)
	}
	return opts, nil
}

// makeLock returns a lock by kind, like those of the other clients: none (nil), mutex, read, write,
// semaphore:N, semaphore:N:K (K of N permits), semaphoremutex, multi and multi:KIND (mutexes, or
// locks of that kind, at several paths with commas), and in-order (mutexes, one by one).
func makeLock(c *zklock.Client, kind, path string) (*zklock.Lock, error) {
	parts := strings.Split(kind, ":")
	switch parts[0] {
	case "none":
		return nil, nil
	case "mutex":
		return c.Mutex(path), nil
	case "read":
		return c.RWMutex(path).Reader(), nil
	case "write":
		return c.RWMutex(path).Writer(), nil
	case "semaphoremutex":
		return c.Semaphore(path, 1), nil
	case "semaphore":
		return makeSemaphore(c, path, parts[1:])
	case "multi":
		return makeMulti(c, strings.Split(path, ","), append(parts[1:], "mutex")[0])
	case "in-order":
		l, err := makeMulti(c, strings.Split(path, ","), "mutex")
		return l.InOrder(), err
	}
	return nil, fmt.Errorf("unknown kind %q", kind)
}

// makeSemaphore parses the numbers of semaphore:N:K. K is 1 by default.
func makeSemaphore(c *zklock.Client, path string, numbers []string) (*zklock.Lock, error) {
	var n [2]int
	n[1] = 1
	if len(numbers) < 1 || len(numbers) > 2 {
		return nil, fmt.Errorf("a semaphore of %q", numbers)
	}
	for i, text := range numbers {
		var err error
		if n[i], err = strconv.Atoi(text); err != nil {
			return nil, err
		}
	}
	return c.Semaphore(path, n[0]).Permits(n[1]), nil
}

// makeMulti returns an All with a lock of the kind for each path.
func makeMulti(c *zklock.Client, paths []string, kind string) (*zklock.Lock, error) {
	locks := make([]*zklock.Lock, len(paths))
	for i, path := range paths {
		var err error
		if locks[i], err = makeLock(c, kind, path); err != nil {
			return nil, err
		}
	}
	return zklock.All(locks...), nil
}
