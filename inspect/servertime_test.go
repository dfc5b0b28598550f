package inspect

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zkserver"
)

func TestServerClockGap(t *testing.T) {
	at := func(ms int) time.Time { return time.UnixMilli(int64(1_000_000 + ms)) }
	for _, tt := range []struct{ before, after, written, want int }{
		{0, 10, 5, 0}, {0, 10, 0, 0}, {0, 10, 10, 0}, {0, 10, 60, 50}, {0, 10, -40, -40},
	} {
		if got := gap(at(tt.before), at(tt.after), at(tt.written)); got != time.Duration(tt.want)*time.Millisecond {
			t.Errorf("%+v: %v", tt, got)
		}
	}
}

// TestServerTimeIgnoresLocalClock checks that the time is the servers', whatever the local clock
// says, and that no znode is left.
func TestServerTimeIgnoresLocalClock(t *testing.T) {
	srv, err := zkserver.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(ln) }() // ends with the server
	defer func() {
		_ = srv.Close()
		<-ended
	}()
	began := time.Now().Truncate(time.Millisecond)
	for _, years := range []int{0, 60} {
		var got TimeReading
		// The bubble's clock begins in the year 2000.
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(time.Duration(years) * 365 * 24 * time.Hour)
			z, err := zk.Dial(context.Background(), ln.Addr().String(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer z.Close()
			if got, err = ServerTime(t.Context(), z, "/"); err != nil {
				t.Error(err)
			}
			if names, _, err := z.Children(t.Context(), "/"); err != nil || len(names) != 1 {
				t.Errorf("left behind: %v, %v", names, err)
			}
			if _, err := ServerTime(t.Context(), z, "/nowhere"); !errors.Is(err, zk.ErrNoNode) {
				t.Errorf("below nothing: %v", err)
			}
			if apart := time.Until(got.At) - got.Ahead; apart < -time.Second || apart > time.Second || got.Ahead.Abs() < 24*time.Hour {
				t.Errorf("at %v the servers say %v, ahead by %v", time.Now(), got.At, got.Ahead)
			}
		})
		if got.At.Before(began) || got.At.After(time.Now()) {
			t.Errorf("%v is not between %v and now", got.At, began)
		}
	}
}
