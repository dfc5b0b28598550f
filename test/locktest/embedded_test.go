package locktest

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/zkserver"
	"github.com/zklock/zklock/zktest"
)

// bubbleTimeout is the session timeout of tests in bubbles, in virtual time.
const bubbleTimeout = 4 * time.Second

func TestClient(t *testing.T) {
	for _, c := range allCases() {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, func(o *zkserver.Options) { o.ExtendedTypes = true })
				c.test(newFixture(t, ClientTarget{Servers: srv.Addr(), DialContext: srv.DialContext}))
			})
		})
	}
}

// TestLocks runs the tests on a durable server with a simulated disk.
func TestLocks(t *testing.T) { inBubbles(t, Kind{}) }

func TestLocksInMemory(t *testing.T) { inBubbles(t, Kind{}, zktest.Volatile) }

// TestLocksInRealTime runs the tests in real time on a server with a real disk.
func TestLocksInRealTime(t *testing.T) {
	srv := zktest.Start(t, zktest.OnDisk(t.TempDir()))
	RunLocks(t, LockTarget{Servers: srv.Servers(), DialContext: srv.DialContext, SessionTimeout: timeout, Expiry: expiry})
}

func TestLocksOfEveryKind(t *testing.T) {
	for _, kind := range Kinds() {
		t.Run(kind.Name, func(t *testing.T) { inBubbles(t, kind) })
	}
}

// inBubbles runs the tests of a kind of lock, each with its own server.
func inBubbles(t *testing.T, kind Kind, options ...zktest.Option) {
	RunLocksInBubbles(t, func(t *testing.T) LockTarget {
		srv := zktest.Start(t, options...)
		return LockTarget{Servers: srv.Servers(), DialContext: srv.DialContext, SessionTimeout: bubbleTimeout, Kind: kind}
	})
}
