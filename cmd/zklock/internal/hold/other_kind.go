package hold

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/inspect"
	"github.com/zklock/zklock/internal/legible"
	"github.com/zklock/zklock/internal/queue"
)

// kindTimeout bounds the reads of checkKind: servers that do not answer must not delay the
// command for long.
const kindTimeout = time.Second

// checkKind returns an error if another client uses one of the locks as a semaphore and this
// client does not, or the other way round: such locks do not exclude each other. The client
// holds the locks, so of two clients that acquire at the same time at least one sees the
// other. A lock that it cannot inspect passes.
func checkKind(ctx context.Context, c *zklock.Client, spec *lockSpec) error {
	if spec.node {
		return nil // its znode can be no other lock's
	}
	ctx, cancel := context.WithTimeout(ctx, kindTimeout)
	defer cancel()
	for i, path := range spec.paths {
		other, kind := c.Semaphore(path, 1), "a semaphore"
		if spec.count > 0 || spec.resizable {
			other, kind = c.Mutex(path), "a mutex or read-write lock"
		}
		entries, err := other.Inspect(ctx)
		if errors.Is(err, zklock.ErrInvalidLock) { // a client with kazoo's layout has no semaphores
			entries, err = permits(ctx, c, path)
		}
		if err != nil {
			continue
		}
		for _, e := range entries {
			if e.Holder && e.Session != 0 {
				return fmt.Errorf("%s uses %s as %s, which this lock does not exclude; give one of them another name",
					inspect.OwnerName(e), legible.Name(spec.names[i]), kind)
			}
		}
	}
	return nil
}

// permits returns the permits of the semaphore at path, for a client that has no semaphores. It
// reads them as a queue, of which only the first entry counts as a holder. [zklock.Client.Inspect]
// would also read each waiter of the mutex at path.
func permits(ctx context.Context, c *zklock.Client, path string) ([]zklock.Entry, error) {
	entries, err := c.Mutex(queue.LeasesPath(path)).Inspect(ctx)
	return slices.DeleteFunc(entries, func(e zklock.Entry) bool {
		parsed, class := queue.ParseName(e.Name)
		return class != queue.Contender || !parsed.Lease()
	}), err
}
