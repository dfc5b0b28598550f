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

// testStopsInTime is a test as you would write it, there under the name
// TestStopsInTime: a program that is cut off from the server must have stopped
// before another one gets the lock. The session's timeout of 20 seconds costs
// no time, since the bubble's clock jumps ahead whenever all are waiting.
func testStopsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		way := srv.Route(t) // the network of the one that will be cut off
		ctx := t.Context()

		lonely := dial(t, way.DialContext)
		began, stopped := make(chan struct{}), make(chan time.Time, 1)
		go zklock.Do(ctx, lonely.Mutex("nightly"), func(ctx context.Context, h *zklock.Hold) error {
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
			t.Error("two at a time: the one that was cut off had not stopped yet")
		}
	})
}

// dial makes a client of the locks that ends with the test.
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

// A program that is cut off from the server must stop working before another
// one gets the lock: a test in a testing/synctest bubble, with virtual time.
func Example_bubble() {
	// The test is testStopsInTime, above.
}
