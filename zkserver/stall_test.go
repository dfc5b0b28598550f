package zkserver

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// TestPauseOfTheServerExpiresNobodyAtOnce holds the loop up for longer than a
// session's timeout. A ping that comes right afterwards, as from the socket's
// buffer, must save the session; silence must not.
func TestPauseOfTheServerExpiresNobodyAtOnce(t *testing.T) {
	for _, ping := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			s := start(t, quiet(t))
			c := login(t, s, time.Second)
			c.create("/e", wire.ModeEphemeral)
			s.ask(func() { time.Sleep(3 * time.Second) })
			time.Sleep(stallGrace / 2)
			if ping {
				c.do(wire.OpPing, nil)
			}
			time.Sleep(stallGrace)
			if got := login(t, s, time.Minute).exists("/e"); got != ping {
				t.Errorf("after a pause, pinged %v: the node is there %v", ping, got)
			}
		})
	}
}

// TestIdleServerSleeps lets a server with a silent session and a container run
// for half an hour of the bubble's clock. It has a reason to wake once a
// minute, and no other.
func TestIdleServerSleeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, quiet(t))
		c := login(t, s, time.Hour)
		c.do(wire.OpCreateContainer, &wire.CreateRequest{Path: "/c", ACL: openACL(), Flags: wire.ModeContainer})
		rounds := func() (n int64) {
			s.ask(func() { n = s.loop.rounds })
			return n
		}
		before := rounds()
		time.Sleep(30 * time.Minute)
		if n := rounds() - before; n < 30 || n > 70 {
			t.Errorf("%d rounds in half an hour, want one or two a minute", n)
		}
	})
}
