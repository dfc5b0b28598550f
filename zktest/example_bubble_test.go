package zktest_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zktest"
)

// testStopsInTime is the body of a test: a program that is cut off from the server must stop before
// another program acquires the lock. The session timeout of 20 seconds takes no real time, because
// the bubble's clock advances when all goroutines wait.
func testStopsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		way := srv.Route(t) // the network of the program that is cut off
		ctx := t.Context()

		partitioned := dial(t, way.DialContext)
		began, stopped := make(chan struct{}), make(chan time.Time, 1)
		go zklock.Do(ctx, partitioned.Mutex("nightly"), func(ctx context.Context, h *zklock.Hold) error {
			close(began)
			<-ctx.Done() // stands for work that stops when its context is done
			stopped <- time.Now()
			if cause := context.Cause(ctx); !errors.Is(cause, zklock.ErrLost) {
				t.Errorf("stopped because of %v", cause)
			}
			return nil
		})
		<-began

		way.Partition()
		hold, err := dial(t, srv.DialContext).Mutex("nightly").Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer hold.Release(ctx)
		if granted := time.Now(); !(<-stopped).Before(granted) {
			t.Error("the program that was cut off had not stopped before the grant")
		}
	})
}

// dial returns a client for locks that is closed when the test ends.
func dial(t *testing.T, dialContext func(ctx context.Context, network, addr string) (net.Conn, error)) *zklock.Client {
	c, err := zklock.Dial(t.Context(), "zktest:2181", &zklock.Options{
		DialContext:    dialContext,
		SessionTimeout: 20 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// A test in a testing/synctest bubble, with virtual time: a program that is cut off from the server
// must stop before another program acquires the lock.
func Example_bubble() {
	// The test is testStopsInTime, above.
}
