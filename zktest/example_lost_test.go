package zktest_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zktest"
)

// nightly is the program under test: it works while it holds the lock.
func nightly(ctx context.Context, locks *zklock.Client, began chan<- *zklock.Hold) error {
	return zklock.Do(ctx, locks.Mutex("nightly"), func(ctx context.Context, h *zklock.Hold) error {
		began <- h
		<-ctx.Done() // stands for work that stops when its context is done
		return context.Cause(ctx)
	})
}

// A program that holds a lock must stop when the lock is lost. Here the server ends its session, as
// it does if the program sends no heartbeat for too long.
func Example_lostLock() {
	srv, err := zktest.New() // in a test: srv := zktest.Start(t)
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	ctx := context.Background()
	locks, err := zklock.Dial(ctx, srv.Servers(), &zklock.Options{DialContext: srv.DialContext})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	began, stopped := make(chan *zklock.Hold, 1), make(chan error, 1)
	go func() { stopped <- nightly(ctx, locks, began) }()
	hold := <-began
	if err := srv.ExpireSession(hold.Session()); err != nil {
		log.Fatal(err)
	}
	fmt.Println("stopped because the lock was lost:", errors.Is(<-stopped, zklock.ErrLost))
	// Output:
	// stopped because the lock was lost: true
}
