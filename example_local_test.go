package zklock_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/zklock/zklock"
)

// Many goroutines that want one lock often pass it on among themselves, a few holds
// at a time.
func ExampleLock_Local() {
	c, stop := open(nil)
	defer stop()
	ctx := context.Background()
	counter := c.Mutex("counter").Local(100)

	sum := 0
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			_ = zklock.Do(ctx, counter, func(context.Context, *zklock.Hold) error {
				sum++ // one at a time
				return nil
			})
		})
	}
	all.Wait()
	fmt.Println(sum)
	// Output: 50
}

// A program that takes one lock after another need not wait for its releases: each
// goes out with the next acquire.
func ExampleHold_ReleaseAsync() {
	c, stop := open(nil)
	defer stop()
	ctx := context.Background()

	for _, job := range []string{"first", "second", "third"} {
		hold := must(c.Mutex("job-" + job).Acquire(ctx))
		fmt.Println(job, hold.Err() == nil)
		_ = hold.ReleaseAsync() // an error says that the lock was lost
	}
	// Output:
	// first true
	// second true
	// third true
}
