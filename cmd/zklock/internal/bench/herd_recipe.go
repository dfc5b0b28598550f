package bench

import (
	"context"
	"fmt"
	"strings"

	"github.com/zklock/zklock/zk"
)

// A Kind is what a recipe's lock does.
type Kind string

// The kinds of lock.
const (
	Mutex     Kind = "mutex"
	ReadWrite Kind = "read-write" // every second contender is a reader
)

// An Edition says where a recipe comes from.
type Edition string

// The editions.
const (
	First    Edition = "first"    // the textbook's first version
	Improved Edition = "improved" // the textbook's version against the herd
	Ours     Edition = "zklock"   // this module's lock
)

// A Recipe is a way to lock.
type Recipe struct {
	Name    string // for people to choose it by
	About   string // who watches what, in a few words
	Kind    Kind
	Edition Edition

	// join makes a contender for the lock at path.
	join func(c *zk.Client, path string) contender
}

// A contender acquires a lock repeatedly. Its methods are called by
// one goroutine, event by the session's reader.
type contender interface {
	// enter takes a place in the queue, where the recipe has one, and returns
	// when it has it. granted is called once, when the lock is held or can't be;
	// it must not block.
	enter(ctx context.Context, write bool, granted func(error)) error
	// wait begins to wait for the grant.
	wait()
	// leave releases the lock, and returns when the servers have confirmed that.
	leave(ctx context.Context) error
	// event handles a watch event of the contender's session.
	event(zk.Event)
	// stop ends waiting. Only close may be called afterwards.
	stop()
	// close frees all resources, after the end of the session.
	close()
}

// Recipes returns all recipes: of each kind the first versions, the improved
// one, and ours.
func Recipes() []Recipe {
	return []Recipe{
		{"one-node", "all watch the one znode and race to create it", Mutex, First, joinNode},
		{"fair-parent", "a queue; all watch its parent and list it", Mutex, First, joinQueue("lock-", "lock-", true)},
		{"fair-ahead", "a queue; each watches the entry ahead and lists again", Mutex, Improved, joinQueue("lock-", "lock-", false)},
		{"zklock-mutex", "this module's Mutex", Mutex, Ours, joinOurs(mutex)},
		{"rw-parent", "readers and writers in a queue; all watch its parent", ReadWrite, First, joinQueue(readPrefix, writePrefix, true)},
		{"rw-ahead", "readers watch the writer ahead, writers the entry ahead", ReadWrite, Improved, joinQueue(readPrefix, writePrefix, false)},
		{"zklock-rwmutex", "this module's RWMutex", ReadWrite, Ours, joinOurs(readWrite)},
	}
}

// Choose returns the recipes with these names, in the order of [Recipes]; all of
// them if there are no names. The error wraps ErrConfig and lists the names.
func Choose(names []string) ([]Recipe, error) {
	all := Recipes()
	if len(names) == 0 {
		return all, nil
	}
	wanted := make(map[string]bool)
	for _, name := range names {
		wanted[name] = true
	}
	var chosen []Recipe
	var known []string
	for _, r := range all {
		known = append(known, r.Name)
		if wanted[r.Name] {
			chosen = append(chosen, r)
			delete(wanted, r.Name)
		}
	}
	for _, name := range names {
		if wanted[name] {
			return nil, fmt.Errorf("%w: %q is no recipe; there are %s", ErrConfig, name, strings.Join(known, ", "))
		}
	}
	return chosen, nil
}
