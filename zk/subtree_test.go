package zk

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// TestDeleteAllIsBounded: a server lists children below each znode without end. DeleteAll gives up
// at a bounded depth, and says why.
func TestDeleteAllIsBounded(t *testing.T) {
	f := newFakeServer(t)
	deepest := make(chan int, 1)
	f.serve(func(c *fakeConn) {
		if !c.acceptSession(1) {
			return
		}
		most := 0
		for r, ok := c.read(); ok; r, ok = c.read() {
			switch r.Op {
			case wire.OpGetChildren2:
				most = max(most, strings.Count(jute.NewReader(r.body).String(), "/"))
				ok = c.reply(r, 0, &wire.GetChildren2Response{Children: []string{"a", "b"}})
			case wire.OpDelete:
				ok = c.reply(r, wire.ErrNotEmpty, nil)
			default:
				ok = c.answer(r)
			}
			if !ok {
				break
			}
		}
		deepest <- most
	})
	c := f.client(nil)
	err := c.DeleteAll(within(t, time.Minute), "/a")
	if !errors.Is(err, ErrNotEmpty) || !strings.Contains(err.Error(), "more than 512 levels") {
		t.Errorf("%v", err)
	}
	c.Close()
	if n := <-deepest; n > maxDeleteDepth+1 {
		t.Errorf("it listed a znode in level %d", n)
	}
}
