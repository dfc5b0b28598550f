package zk

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
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

// TestDeleteAllSendsFewDeletes checks that DeleteAll needs three deletes for each of many
// directories with one znode: one that finds the znode, and one for each of the two.
func TestDeleteAllSendsFewDeletes(t *testing.T) {
	const directories = 5000
	f := newFakeServer(t)
	deletes := make(chan int, 1)
	f.serve(func(c *fakeConn) {
		if !c.acceptSession(1) {
			return
		}
		tree := map[string]map[string]bool{"/a": {}} // children by path
		for i := range directories {
			name := fmt.Sprintf("0f8fad5b-d9cb-469f-a165-70867728950e-%08d", i)
			tree["/a"][name] = true
			tree["/a/"+name] = map[string]bool{"x": true}
		}
		n := 0
		for r, ok := c.read(); ok; r, ok = c.read() {
			at := jute.NewReader(r.body).String()
			switch r.Op {
			case wire.OpGetChildren2:
				c.reply(r, 0, &wire.GetChildren2Response{Children: slices.Collect(maps.Keys(tree[at]))})
			case wire.OpDelete:
				n++
				if len(tree[at]) > 0 {
					c.reply(r, wire.ErrNotEmpty, nil)
					break
				}
				delete(tree, at)
				delete(tree[path.Dir(at)], path.Base(at))
				c.reply(r, 0, nil)
			default:
				c.answer(r)
			}
		}
		if len(tree) > 0 {
			t.Errorf("%d directories are left", len(tree))
		}
		deletes <- n
	})
	c := f.client(nil)
	if err := c.DeleteAll(within(t, time.Minute), "/a"); err != nil {
		t.Error(err)
	}
	c.Close()
	if n, most := <-deletes, directories*31/10; n > most {
		t.Errorf("%d deletes for %d directories, want at most %d", n, directories, most)
	}
}
