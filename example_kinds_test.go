package zklock_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/zklock/zklock"
)

func ExampleRWMutex() {
	c, stop := open(nil)
	defer stop()
	ctx := context.Background()
	catalog := c.RWMutex("catalog")

	one := must(catalog.Reader().Acquire(ctx))
	two := must(catalog.Reader().Acquire(ctx))
	_, err := catalog.Writer().TryAcquire(ctx)
	fmt.Println("readers share:", one.Err() == nil && two.Err() == nil)
	fmt.Println("a writer waits:", errors.Is(err, zklock.ErrLocked))
	_ = one.Release(ctx)
	_ = two.Release(ctx)

	writer := must(catalog.Writer().Acquire(ctx))
	_, err = catalog.Reader().TryAcquire(ctx)
	fmt.Println("and then holds alone:", errors.Is(err, zklock.ErrLocked))
	_ = writer.Release(ctx)
	// Output:
	// readers share: true
	// a writer waits: true
	// and then holds alone: true
}

// A writer that goes on reading what it wrote lets other readers in at once, and
// no writer in between.
func ExampleHold_Downgrade() {
	c, stop := open(nil)
	defer stop()
	ctx := context.Background()
	catalog := c.RWMutex("catalog")

	hold := must(catalog.Writer().Acquire(ctx))
	token := hold.Token()
	fmt.Println(hold.Downgrade(ctx))
	reader := must(catalog.Reader().TryAcquire(ctx))
	fmt.Println("both read:", hold.Err() == nil && reader.Err() == nil, "with the writer's token:", hold.Token() == token)
	_ = reader.Release(ctx)
	_ = hold.Release(ctx)
	// Output:
	// <nil>
	// both read: true with the writer's token: true
}

// At most three downloads at a time, across all machines; a large one counts for
// two.
func ExampleClient_Semaphore() {
	c, stop := open(nil)
	defer stop()
	ctx := context.Background()
	downloads := c.Semaphore("downloads", 3)

	small := must(downloads.Acquire(ctx))
	large := must(downloads.Permits(2).Acquire(ctx))
	_, err := downloads.TryAcquire(ctx)
	fmt.Println("none is left:", errors.Is(err, zklock.ErrLocked))
	_ = large.Release(ctx)
	next, err := downloads.TryAcquire(ctx)
	fmt.Println("now there is:", err)
	_ = next.Release(ctx)
	_ = small.Release(ctx)
	// Output:
	// none is left: true
	// now there is: <nil>
}

// A transfer between two accounts takes both, in whatever order they are named:
// two transfers in opposite directions can't deadlock.
func ExampleAll() {
	c, stop := open(nil)
	defer stop()
	ctx := context.Background()

	hold := must(zklock.All(c.Mutex("account/7"), c.Mutex("account/3")).Acquire(ctx))
	_, err := c.Mutex("account/3").TryAcquire(ctx)
	fmt.Println("both are held:", errors.Is(err, zklock.ErrLocked))
	fmt.Println("with one token:", hold.TokenOf("account/3") == hold.Token())
	fmt.Println(hold.Release(ctx))
	// Output:
	// both are held: true
	// with one token: true
	// <nil>
}

// A function that locks for itself is called by one that has the lock: the context
// says so.
func ExampleLock_Reentrant() {
	c, stop := open(nil)
	defer stop()
	ctx := context.Background()
	lock := c.Mutex("stock").Reentrant()

	count := func(ctx context.Context) error {
		return zklock.Do(ctx, lock, func(ctx context.Context, h *zklock.Hold) error {
			fmt.Println("counting")
			return nil
		})
	}
	err := zklock.Do(ctx, lock, func(ctx context.Context, h *zklock.Hold) error {
		return count(ctx) // ctx, not context.Background()
	})
	fmt.Println(err)

	// Without Reentrant it would wait for itself, and fails instead.
	err = zklock.Do(ctx, c.Mutex("stock"), func(ctx context.Context, h *zklock.Hold) error {
		_, err := c.Mutex("stock").Acquire(ctx)
		return err
	})
	fmt.Println(errors.Is(err, zklock.ErrReentry))
	// Output:
	// counting
	// <nil>
	// true
}

// A holder that gives the lock back when somebody asks for it.
func ExampleHold_Revoked() {
	c, stop := open(nil)
	defer stop()
	ctx := context.Background()
	hold := must(c.Mutex("gpu").Acquire(ctx))
	done := make(chan struct{})
	go func() { // ends when it was asked
		defer close(done)
		select {
		case <-hold.Revoked():
			fmt.Println("asked; finishing and releasing")
			_ = hold.Release(ctx)
		case <-hold.Done(): // the work is done, or the hold lost
		}
	}()

	// Somebody else, with a client of his own, `zklock revoke gpu`, or Curator.
	entries, err := c.Mutex("gpu").Revoke(ctx)
	fmt.Println("asked", len(entries), "holder:", err)
	<-done
	// Unordered output:
	// asked 1 holder: <nil>
	// asked; finishing and releasing
}

// The textbook's read-write lock, <host>-R-<sequence> and <host>-W-<sequence>
// under one parent, shared with programs that implement it themselves.
func ExampleLayout() {
	c, stop := open(func(o *zklock.Options) {
		o.Layout = zklock.Layout{Prefix: "web1", Exclusive: "-W-", Shared: "-R-"}
	})
	defer stop()
	ctx := context.Background()
	hold := must(c.RWMutex("/textbook").Writer().Acquire(ctx))
	fmt.Println(hold.Node())
	fmt.Println(hold.Release(ctx))
	// Output:
	// /textbook/web1-W-0000000000
	// <nil>
}
