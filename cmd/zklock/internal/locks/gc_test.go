package locks

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/zklock/zklock/cmd/zklock/internal/cli"
	"github.com/zklock/zklock/zktest"
)

// TestGCEndsIfServersStopAnswering checks that zklock gc fails after --connect-timeout if the
// servers accept its session, and answer nothing after that.
func TestGCEndsIfServersStopAnswering(t *testing.T) {
	srv := zktest.Start(t)
	srv.DelayFunc(func(f zktest.Frame) time.Duration {
		if f.Direction == zktest.ToServer || f.Op == "connect" {
			return 0
		}
		return time.Hour
	})
	c := GC(&cli.App{})
	c.SilenceUsage, c.SilenceErrors = true, true
	c.SetArgs([]string{"/zklock", "--servers", srv.ListenTCP(t), "--connect-timeout", "1s", "--session-timeout", "4s"})
	// Without the limit, the error is that of a lost connection.
	if err := c.Execute(); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want the end of the time for an answer", err)
	}
}
