package zkserver

import (
	"errors"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/internal/servertest"
	"github.com/zklock/zklock/internal/wire"
)

func TestPauseBlocksRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := testOptions(t)
		opts.setup.Controls = new(servertest.Controls)
		s := start(t, opts)
		c := login(t, s, time.Second)
		c.create("/e", wire.ModeEphemeral)
		resume := opts.setup.Controls.Pause()
		c.send(wire.OpPing, nil)
		began := time.Now()
		time.AfterFunc(3*time.Second, resume)
		if _, _, err := c.next(); err != nil || time.Since(began) != 3*time.Second {
			t.Errorf("answered after %v: %v", time.Since(began), err)
		}
		resume() // has no effect
		if !login(t, s, time.Minute).exists("/e") {
			t.Error("the session whose ping waited was expired")
		}
	})
}

func TestPausedServerCanBeClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := testOptions(t)
		opts.setup.Controls = new(servertest.Controls)
		s := start(t, opts)
		resume := opts.setup.Controls.Pause()
		s.Close()
		resume()
		opts.setup.Controls.Pause()() // must not block on a closed server
		if err := opts.setup.Controls.JumpSequence("/", 5); !errors.Is(err, ErrServerClosed) {
			t.Errorf("a closed server's sequence: %v", err)
		}
	})
}

func TestJumpSequenceIsDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts, disk := onMemory(t, 2)
		opts.setup.Controls = new(servertest.Controls)
		s := start(t, opts)
		login(t, s, time.Hour).create("/q", wire.ModePersistent)
		must(t, opts.setup.Controls.JumpSequence("/q", 1<<31-2))
		if err := opts.setup.Controls.JumpSequence("/none", 5); !errors.Is(err, wire.ErrNoNode) {
			t.Errorf("a missing node: %v", err)
		}
		if err := opts.setup.Controls.JumpSequence("/q", 5); !errors.Is(err, wire.ErrBadArguments) {
			t.Errorf("back to a lower number: %v", err)
		}
		disk.FailAt(0, syscall.EIO, 0)
		if err := opts.setup.Controls.JumpSequence("/q", 1<<31-1); !errors.Is(err, ErrStorage) {
			t.Errorf("a jump that the disk did not store: %v", err)
		}
		s.Close()
		c := login(t, start(t, opts), time.Hour)
		if got := c.create("/q/n-", wire.ModePersistentSequential); got != "/q/n-2147483646" {
			t.Errorf("the next child is %s", got)
		}
	})
}
