package locktest

import (
	"errors"
	"path"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/internal/queue"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// inBubble runs a test in a synctest bubble with a server. At its end, no entry may be left.
func inBubble(t *testing.T, test func(e *env, srv *zktest.Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		e := &env{T: t, ctx: t.Context(), target: LockTarget{Servers: srv.Servers(), DialContext: srv.DialContext, SessionTimeout: bubbleTimeout}}
		test(e, srv)
		if !t.Failed() {
			time.Sleep(bubbleTimeout) // in virtual time, until all background work has ended
			e.noEntries()
		}
	})
}

// noEntries fails if an entry or a record of a lock delay is left. Parents are persistent or
// containers, whose owner is negative.
func (e *env) noEntries() {
	e.Helper()
	op := e.operator()
	var walk func(dir string)
	walk = func(dir string) {
		children, _, err := op.Children(e.ctx, dir)
		if err != nil && !errors.Is(err, zk.ErrNoNode) { // the server collects parents
			e.Fatal(err)
		}
		for _, child := range children {
			node := path.Join(dir, child)
			stat, there, err := op.Exists(e.ctx, node)
			if err != nil {
				e.Fatal(err)
			}
			if _, record := queue.ParseName(child + "0000000000"); there && (stat.EphemeralOwner > 0 || record == queue.Contender) {
				e.Errorf("%s is left", node)
			}
			walk(node)
		}
	}
	walk("/")
	if err := op.Close(); err != nil {
		e.Error(err)
	}
}
