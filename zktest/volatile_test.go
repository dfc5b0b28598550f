package zktest

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/zk"
)

// A volatile server that is restarted within the moment at which it started is
// no older than what its clients have seen: they must be let in again.
func TestVolatileRestartAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := Start(t, Volatile)
		c := srv.Dial(t)
		mustCreate(t, c, "/gone", zk.ModePersistent)
		before := c.SessionID()
		srv.Restart(t)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		// The first may belong to the session that is over.
		_, _, err := c.Exists(ctx, "/gone")
		if err != nil {
			_, _, err = c.Exists(ctx, "/gone")
		}
		if err != nil {
			t.Fatalf("%v; state %v", err, c.State())
		}
		if c.SessionID() == before {
			t.Errorf("the new server gave the session id %#x again", before)
		}
	})
}
