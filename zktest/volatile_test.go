package zktest

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/zk"
)

// TestVolatileRestartAtOnce checks that a volatile server that restarts at the moment of its start
// accepts its former clients: its zxid is not below those that they have seen.
func TestVolatileRestartAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := Start(t, Volatile)
		c := srv.Dial(t)
		mustCreate(t, c, "/gone", zk.ModePersistent)
		before := c.SessionID()
		srv.Restart(t)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		// The first request may belong to the former session.
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
