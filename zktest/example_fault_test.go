package zktest_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// server starts a server and a client for an example. A test calls zktest.Start(t) and srv.Dial(t)
// instead.
func server() (srv *zktest.Server, client *zk.Client, stop func()) {
	srv, err := zktest.New()
	if err != nil {
		log.Fatal(err)
	}
	client, err = zk.Dial(context.Background(), srv.Servers(), &zk.Options{DialContext: srv.DialContext})
	if err != nil {
		log.Fatal(err)
	}
	return srv, client, func() { client.Close(); srv.Close() }
}

// The server applies a create, and its reply is lost with the connection. The acquire must find its
// own entry again. Otherwise it would wait for that entry.
func ExampleRelay_DropReply() {
	srv, client, stop := server()
	defer stop()
	ctx := context.Background()
	locks := zklock.New(client, nil)
	defer locks.Close()

	lost := srv.DropReply(zktest.Match{Op: "create", Path: "/zklock/nightly/"})
	hold, err := locks.Mutex("nightly").Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	<-lost.Done()
	entries, err := locks.Inspect(ctx, "nightly")
	fmt.Println("held:", hold.Err() == nil, "entries:", len(entries), err)
	// Output:
	// held: true entries: 1 <nil>
}

func ExampleRelay_CutAfter() {
	srv, client, stop := server()
	defer stop()
	ctx := context.Background()

	third := srv.CutAfter(zktest.Match{Op: "create2", Skip: 2})
	for _, path := range []string{"/a", "/b", "/c"} {
		if _, _, err := client.Create(ctx, path, nil, zk.OpenACL(), zk.ModePersistent); err != nil {
			log.Fatal(err)
		}
	}
	<-third.Done()
	fmt.Println("cut:", third.Count(), "time")
	// Output:
	// cut: 1 time
}

func ExampleRelay_DelayFunc() {
	srv, client, stop := server()
	defer stop()
	ctx := context.Background()

	const slow = 30 * time.Millisecond
	srv.DelayFunc(func(f zktest.Frame) time.Duration {
		if f.Op == "sync" && f.Direction == zktest.ToClient {
			return slow
		}
		return 0
	})
	began := time.Now()
	err := client.Sync(ctx, "/")
	fmt.Println("a slow sync:", time.Since(began) >= slow, err)
	// Output:
	// a slow sync: true <nil>
}

// The sequence numbers of a znode's children end at 2147483647. Then an acquire fails, because two
// clients could hold the lock.
func ExampleServer_JumpSequence() {
	srv, client, stop := server()
	defer stop()
	ctx := context.Background()
	locks := zklock.New(client, nil)
	defer locks.Close()

	hold, err := locks.Mutex("old").Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if err := hold.Release(ctx); err != nil {
		log.Fatal(err)
	}
	if err := srv.JumpSequence("/zklock/old", 1<<31-1); err != nil {
		log.Fatal(err)
	}
	_, err = locks.Mutex("old").Acquire(ctx)
	fmt.Println(errors.Is(err, zklock.ErrSequenceExhausted))
	// Output:
	// true
}

func ExampleServer_Pause() {
	srv, client, stop := server()
	defer stop()
	srv.Pause()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	_, _, err := client.Exists(ctx, "/")
	fmt.Println("while the server is paused:", errors.Is(err, context.DeadlineExceeded))
	srv.Resume()
	_, ok, err := client.Exists(context.Background(), "/")
	fmt.Println("afterwards:", ok, err)
	// Output:
	// while the server is paused: true
	// afterwards: true <nil>
}
