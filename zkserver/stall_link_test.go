package zkserver

import (
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// TestSlowLinkKeepsItsSession has a client with a slow link that takes a long answer
// for longer than its session's timeout, and sends pings all the while. They stand
// behind the answer; the session goes on, as with ZooKeeper, which notes a ping
// when it is read. When the pings end, so does the session.
func TestSlowLinkKeepsItsSession(t *testing.T) {
	for _, pings := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			s := start(t, quiet(t))
			maker := login(t, s, time.Hour)
			maker.create("/data", wire.ModePersistent)
			maker.do(wire.OpSetData, &wire.SetDataRequest{Path: "/data", Data: make([]byte, 1_000_000), Version: -1})
			c := login(t, s, 3*time.Second)
			c.create("/e", wire.ModeEphemeral)
			for range 3 {
				c.send(wire.OpGetData, &wire.GetDataRequest{Path: "/data"})
			}
			slow := make([]byte, 1000)
			for i := range 3000 {
				if pings && i%500 == 0 {
					c.send(wire.OpPing, nil)
				}
				if _, err := io.ReadFull(c.nc, slow); err != nil {
					break
				}
				time.Sleep(5 * time.Millisecond)
			}
			if maker.exists("/e") != pings {
				t.Errorf("pings %v: the session is there %v", pings, !pings)
			}
			time.Sleep(time.Minute)
			if maker.exists("/e") {
				t.Error("the session of a silent client did not end")
			}
		})
	}
}
