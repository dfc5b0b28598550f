package zkserver

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/internal/wal/memfs"
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

// TestQueueExpiresNobody has a slow disk and clients that write more than it takes,
// so that a ping waits for its turn beyond the session's timeout. It came in time:
// the session stays, until its client is silent.
func TestQueueExpiresNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts, fs := onMemory(t, 43)
		opts.Logger, opts.SnapshotBytes = discard(), 1<<40
		s := start(t, opts)
		maker := login(t, s, time.Hour)
		maker.create("/data", wire.ModePersistent)
		crowd := make([]*raw, 40)
		for i := range crowd {
			crowd[i] = login(t, s, time.Hour)
		}
		c := login(t, s, 3*time.Second)
		c.create("/e", wire.ModeEphemeral)
		fs.SetFault(func(op memfs.Op) memfs.Fault {
			if op.Kind == memfs.OpSync {
				time.Sleep(time.Second)
			}
			return memfs.Fault{}
		})
		var heavy []byte
		for i := range 2 {
			heavy = wire.AppendRequest(heavy, int32(i), wire.OpSetData, &wire.SetDataRequest{Path: "/data", Data: make([]byte, 1_000_000), Version: -1})
		}
		for _, w := range crowd {
			go w.nc.Write(heavy) // ends with the connection
			go w.drain()
		}
		for range 8 {
			c.send(wire.OpPing, nil)
			time.Sleep(time.Second)
		}
		if c.answers(8) != 8 || !c.exists("/e") {
			t.Error("the session ended although its client was heard")
		}
		time.Sleep(time.Minute)
		if maker.exists("/e") {
			t.Error("the session of a silent client did not end")
		}
	})
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
