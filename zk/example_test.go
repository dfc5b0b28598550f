package zk_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zkserver"
)

// server starts a server in this process, so that the examples can run.
func server() (*zkserver.Server, error) {
	return zkserver.New(nil)
}

func Example() {
	srv, err := server()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := zk.Dial(ctx, "localhost:2181", &zk.Options{DialContext: srv.DialContext})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	path, _, err := c.Create(ctx, "/greeting", []byte("hello"), nil, zk.ModeEphemeral)
	if err != nil {
		fmt.Println(err)
		return
	}
	data, stat, err := c.Get(ctx, path)
	fmt.Println(path, string(data), stat.EphemeralOwner == c.SessionID(), err)

	_, err = c.Set(ctx, "/missing", nil, -1)
	fmt.Println(errors.Is(err, zk.ErrNoNode), zk.Applied(err))
	// Output:
	// /greeting hello true <nil>
	// true no
}

// Go sends requests without waiting for earlier answers, which arrive in order. Here one round trip
// creates a znode and lists it.
func ExampleClient_Go() {
	srv, err := server()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := zk.Dial(ctx, "localhost", &zk.Options{DialContext: srv.DialContext})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	done := make(chan struct{})
	c.Go(zk.CreateOp("/job-", nil, nil, zk.ModeEphemeralSequential), func(r zk.Result) {
		fmt.Println("made", r.Path, r.Err)
	})
	c.Go(zk.ChildrenOp("/", false), func(r zk.Result) {
		fmt.Println("listed", len(r.Children), r.Err)
		close(done)
	})
	<-done
	// Output:
	// made /job-0000000000 <nil>
	// listed 2 <nil>
}

// The client sends batchable requests of many goroutines in batches. If another request of its
// batch fails, a request is rolled back, and the caller repeats it without a batch.
func ExampleBatchableOp() {
	srv, err := server()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := zk.Dial(ctx, "localhost:2181", &zk.Options{DialContext: srv.DialContext})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	answers := make(chan zk.Result, 2)
	for _, path := range []string{"/a", "/missing/b"} {
		op := zk.CreateOp(path, nil, nil, zk.ModeEphemeral)
		c.Go(zk.BatchableOp(op), func(r zk.Result) {
			if errors.Is(r.Err, zk.ErrRolledBack) {
				c.Go(op, func(r zk.Result) { answers <- r })
				return
			}
			answers <- r
		})
	}
	made, missed := 0, 0
	for range 2 {
		switch r := <-answers; {
		case r.Err == nil:
			made++
		case errors.Is(r.Err, zk.ErrNoNode):
			missed++
		}
	}
	fmt.Println(made, "made,", missed, "without a parent")
	// Output: 1 made, 1 without a parent
}
