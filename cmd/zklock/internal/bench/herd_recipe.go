package bench

import (
	"context"
	"slices"

	"github.com/zklock/zklock/zk"
)

// A Kind is a kind of lock.
type Kind string

// The kinds of lock.
const (
	Mutex     Kind = "mutex"
	ReadWrite Kind = "read-write" // every second contender is a reader
)

// An Edition is the origin of a recipe.
type Edition string

// The editions.
const (
	First    Edition = "first"    // the first version in textbooks
	Improved Edition = "improved" // the version without the herd effect
	Ours     Edition = "zklock"   // zklock's lock
)

// A Recipe is a way to lock.
type Recipe struct {
	Name    string // the value for --recipes
	About   string // a short description of which contender watches what
	Kind    Kind
	Edition Edition

	// join returns a contender for the lock at path.
	join func(c *zk.Client, path string) contender
}

// A contender acquires a lock repeatedly. One goroutine calls its methods, except for
// event, which the session's reader calls.
type contender interface {
	// enter enqueues, if the recipe has a queue, and returns when the entry exists. It
	// calls granted once, when the lock is held or the acquire has failed. granted must not
	// block.
	enter(ctx context.Context, write bool, granted func(error)) error
	// wait starts to wait for the grant.
	wait()
	// leave releases the lock, and returns when the servers have confirmed the release.
	leave(ctx context.Context) error
	// event handles a watch event of the contender's session.
	event(zk.Event)
	// stop ends waiting. Only close may be called afterwards.
	stop()
	// close frees all resources, after the end of the session.
	close()
}

// Recipes returns all recipes: for each kind the first versions, the improved version, and
// zklock's lock.
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

// Choose returns the recipes with these names, in the order of [Recipes], or all if there are
// no names.
func Choose(names []string) []Recipe {
	return slices.DeleteFunc(Recipes(), func(r Recipe) bool {
		return len(names) > 0 && !slices.Contains(names, r.Name)
	})
}
