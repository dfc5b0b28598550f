package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"testing"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zkserver"
	"github.com/zklock/zklock/zktest"
)

// embedded starts a server in this process, for examples that run anywhere. A
// program has a connection string instead: "zk1:2181,zk2:2181,zk3:2181".
func embedded() (servers string, opts *zklock.Options, stop func()) {
	srv, err := zkserver.New(zkserver.Options{})
	if err != nil {
		log.Fatal(err)
	}
	return "embedded:2181", &zklock.Options{DialContext: srv.DialContext}, func() { srv.Close() }
}

func Example() {
	servers, opts, stop := embedded()
	defer stop()
	ctx := context.Background()

	c, err := zklock.Dial(ctx, servers, opts) // "zk1:2181,zk2:2181,zk3:2181", nil
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	err = zklock.Do(ctx, c.Mutex("reports/nightly"), func(ctx context.Context, h *zklock.Hold) error {
		fmt.Println("held:", h.Err() == nil, "with a token:", h.Token() > 0)
		return nil // ctx is done if the hold is lost
	})
	fmt.Println("error:", err)
	// Output:
	// held: true with a token: true
	// error: <nil>
}

func ExampleLock_TryAcquire() {
	servers, opts, stop := embedded()
	defer stop()
	ctx := context.Background()
	c, err := zklock.Dial(ctx, servers, opts)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	lock := c.Mutex("demo")
	hold, err := lock.TryAcquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	_, err = lock.TryAcquire(ctx)
	fmt.Println(errors.Is(err, zklock.ErrLocked))
	fmt.Println(hold.Release(ctx))
	// Output:
	// true
	// <nil>
}

// A store that refuses tokens lower than the highest it has seen applies no
// stale write, whatever happened to the process that comes with one.
type store struct {
	highest int64
	value   string
}

func (s *store) write(token int64, value string) error {
	if token < s.highest {
		return errors.New("a later holder has been here")
	}
	s.highest, s.value = token, value
	return nil
}

func ExampleHold_Token() {
	servers, opts, stop := embedded()
	defer stop()
	ctx := context.Background()
	c, err := zklock.Dial(ctx, servers, opts)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	var s store
	first, _ := c.Mutex("demo").Acquire(ctx)
	_ = first.Release(ctx) // or lost, while its process was paused
	second, _ := c.Mutex("demo").Acquire(ctx)
	fmt.Println(s.write(second.Token(), "new"))
	fmt.Println(s.write(first.Token(), "stale"))
	fmt.Println(s.value)
	// Output:
	// <nil>
	// a later holder has been here
	// new
}

func ExampleLock_Inspect() {
	servers, opts, stop := embedded()
	defer stop()
	ctx := context.Background()
	opts.Owner = &zklock.Owner{Host: "web1", PID: 4711, Command: "report"}
	c, err := zklock.Dial(ctx, servers, opts)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	hold, err := c.Mutex("demo").Acquire(ctx)
	if err != nil {
		log.Fatal(err)
	}
	entries, err := c.Mutex("demo").Inspect(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range entries {
		fmt.Println(e.Holder, e.Mode, e.Owner, e.Owner.Command, e.Token == hold.Token())
	}
	// Output:
	// true exclusive web1:4711 report true
}

func TestExamplesStore(t *testing.T) {
	var s store
	if s.write(2, "a") != nil || s.write(1, "b") == nil || s.write(2, "c") != nil || s.value != "c" {
		t.Error("the example's store is wrong")
	}
}

func TestStopsWithItsLock(t *testing.T) {
	srv := zktest.Start(t)
	ctx := t.Context()
	locks, err := zklock.Dial(ctx, srv.Servers(), &zklock.Options{DialContext: srv.DialContext})
	if err != nil {
		t.Fatal(err)
	}
	defer locks.Close()
	hold, err := locks.Mutex("nightly").Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := srv.ExpireSession(hold.Session()); err != nil {
		t.Fatal(err)
	}
	<-hold.Done() // does your program stop here?
}
