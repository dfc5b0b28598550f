package inspect_test

import (
	"context"
	"fmt"
	"log"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/inspect"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// A client holds one lock, and the example lists all locks below /zklock. In a test,
// zktest.Start starts the server.
func Example() {
	ctx := context.Background()
	srv, err := zktest.New()
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	z, err := zk.Dial(ctx, srv.Servers(), &zk.Options{DialContext: srv.DialContext})
	if err != nil {
		log.Fatal(err)
	}
	defer z.Close()

	locks := zklock.New(z, nil)
	defer locks.Close()
	hold, err := locks.Mutex("reports").Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer hold.Release(ctx)

	reader := inspect.NewReader(z, zklock.Layout{})
	defer reader.Close()
	found, err := reader.List(ctx, "/zklock", inspect.ListOptions{})
	if err != nil {
		log.Fatal(err)
	}
	for _, l := range found.Locks {
		fmt.Printf("%s: %d holder, %d waiting\n", l.Path, len(l.Holders()), l.Waiting())
	}
	// Output: /zklock/reports: 1 holder, 0 waiting
}

// A watcher keeps the list current until its context ends.
func ExampleWatcher() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	srv, err := zktest.New()
	if err != nil {
		log.Fatal(err)
	}
	defer srv.Close()
	z, err := zk.Dial(ctx, srv.Servers(), &zk.Options{DialContext: srv.DialContext})
	if err != nil {
		log.Fatal(err)
	}
	defer z.Close()

	watcher := inspect.NewWatcher(z, nil)
	defer watcher.Close()
	ended := make(chan error, 1)
	go func() { ended <- watcher.Run(ctx) }()

	locks := zklock.New(z, nil)
	defer locks.Close()
	hold, err := locks.Mutex("reports").Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer hold.Release(ctx)

	for {
		changed := watcher.Changed()
		if l := watcher.Snapshot().Lock("/zklock/reports"); l != nil {
			fmt.Println(l.Path, "is held:", len(l.Holders()) == 1)
			break
		}
		<-changed
	}
	cancel()
	fmt.Println(<-ended)
	// Output:
	// /zklock/reports is held: true
	// context canceled
}
