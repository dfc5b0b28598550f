package zk_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// TestCreateProtectedCreatesOnce checks that CreateProtected creates and returns one znode if the
// request or its reply was lost, also if the search for the znode is interrupted.
func TestCreateProtectedCreatesOnce(t *testing.T) {
	for name, fault := range map[string]func(*zktest.Server){
		"none":    func(*zktest.Server) {},
		"reply":   func(s *zktest.Server) { s.DropReply(zktest.Match{Op: "create2"}) },
		"request": func(s *zktest.Server) { s.DropRequest(zktest.Match{Op: "create2"}) },
		"reply, then the search": func(s *zktest.Server) {
			s.DropReply(zktest.Match{Op: "create2"})
			s.DropReply(zktest.Match{Op: "multi"})
			s.DropReply(zktest.Match{Op: "getChildren2"})
			s.DropReply(zktest.Match{Op: "exists"})
		},
	} {
		for _, mode := range []zk.CreateMode{zk.ModeEphemeralSequential, zk.ModePersistentSequential} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv := zktest.Start(t)
					c := srv.Dial(t)
					if err := c.EnsurePath(t.Context(), "/queue", nil); err != nil {
						t.Fatal(err)
					}
					fault(srv)
					made, stat, err := c.CreateProtected(t.Context(), "/queue/lock-", []byte("x"), nil, mode)
					if err != nil || !strings.HasPrefix(made, "/queue/_c_") || !strings.Contains(made, "-lock-") {
						t.Fatalf("%q, %v", made, err)
					}
					children, _, err := c.Children(t.Context(), "/queue")
					if err != nil || len(children) != 1 || "/queue/"+children[0] != made {
						t.Fatalf("%v, %v; created %s", children, err, made)
					}
					if now, _, err := c.Exists(t.Context(), made); err != nil || now.Czxid != stat.Czxid {
						t.Fatalf("%+v, %+v, %v", stat, now, err)
					}
				})
			})
		}
	}
}

func TestCreateProtectedFailsAfterExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		c := srv.Dial(t)
		srv.DropReply(zktest.Match{Op: "create2"})
		srv.Refuse(true)
		time.AfterFunc(time.Minute, func() { srv.Refuse(false) })
		_, _, err := c.CreateProtected(t.Context(), "/lock-", nil, nil, zk.ModeEphemeralSequential)
		if !errors.Is(err, zk.ErrSessionExpired) {
			t.Fatal(err)
		}
		if _, _, err := c.CreateProtected(t.Context(), "/lock-", nil, nil, zk.ModePersistent); !errors.Is(err, zk.ErrInvalidOp) {
			t.Fatal(err)
		}
	})
}

// TestCreateProtectedWithoutSession checks that CreateProtected finds its znode if it was called
// after one session had ended, and before the next one began.
func TestCreateProtectedWithoutSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		c := srv.Dial(t)
		first := c.SessionID()
		expired := make(chan struct{})
		defer c.Listen(zk.Listener{State: func(s zk.StateChange) {
			if s.State == zk.Expired {
				srv.Refuse(true)
				close(expired)
			}
		}})()
		if err := srv.ExpireClient(c); err != nil {
			t.Fatal(err)
		}
		<-expired
		if c.SessionID() != 0 {
			t.Fatal("the next session has begun")
		}
		srv.DropReply(zktest.Match{Op: "create2"})
		time.AfterFunc(time.Second, func() { srv.Refuse(false) })
		made, stat, err := c.CreateProtected(t.Context(), "/lock-", nil, nil, zk.ModeEphemeralSequential)
		if err != nil || stat.EphemeralOwner != c.SessionID() || stat.EphemeralOwner == first {
			t.Errorf("created %q, %+v, in session %#x, %v", made, stat, c.SessionID(), err)
		}
	})
}
