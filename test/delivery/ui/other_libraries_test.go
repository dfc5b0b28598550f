package ui

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock/test/harness"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zkui"
)

// acquireTimeout limits an acquire by another library.
const acquireTimeout = 5 * time.Minute

// TestPageShowsLocksOfCuratorAndKazoo checks holders, queues, and hand-overs on a ZooKeeper
// ensemble.
func TestPageShowsLocksOfCuratorAndKazoo(t *testing.T) {
	b := StartBrowser(t)
	cluster := harness.StartEnsemble(t, 3, harness.ServerConfig{})
	addr := cluster.ConnectString()
	z, err := zk.Dial(t.Context(), addr, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := z.Close(); err != nil {
			t.Error(err)
		}
	})
	s := ServeOver(t, z, func(o *zkui.Options) { o.Prefix = "/" })
	for _, library := range []struct {
		name, kind, recipe string
		start              func(testing.TB, string) *harness.Peer
	}{
		{"curator", "mutex", "Curator mutex", harness.Curator},
		{"kazoo", "lock", "kazoo lock", harness.Kazoo},
	} {
		t.Run(library.name, func(t *testing.T) {
			path := "/apps/" + library.name
			holder, waiter := library.start(t, addr), library.start(t, addr)
			ctx, cancel := context.WithTimeout(t.Context(), 2*acquireTimeout)
			defer cancel()
			first, err := holder.Acquire(ctx, library.kind, path, acquireTimeout)
			if err != nil {
				t.Fatal(err)
			}
			b.Open(s.URL + "?q=" + library.name)
			waitForList(t, b, path)
			b.Open(s.URL + "lock?path=" + path)
			b.Shows(".badges", library.recipe)
			if got := nodeOf(b, ".holder [data-details]"); got != first {
				t.Errorf("the page shows the holder %s, want %s", got, first)
			}

			type acquired struct {
				node string
				err  error
			}
			got := make(chan acquired, 1)
			go func() { // ends with ctx at the latest
				node, err := waiter.Acquire(ctx, library.kind, path, acquireTimeout)
				got <- acquired{node, err}
			}()
			b.Shows(".badges", "1 waiting")
			b.Until(`document.querySelectorAll(".stop").length === 1`)
			next := nodeOf(b, ".stop")
			if err := holder.Release(ctx); err != nil {
				t.Fatal(err)
			}
			second := <-got
			if second.err != nil {
				t.Fatal(second.err)
			}
			if next != second.node {
				t.Errorf("the page showed the waiter %s, want %s", next, second.node)
			}
			b.Until(`document.querySelectorAll(".stop").length === 0`)
			if got := nodeOf(b, ".holder [data-details]"); got != second.node {
				t.Errorf("after the hand-over, the page shows the holder %s, want %s", got, second.node)
			}
		})
	}
}

// nodeOf opens the details of an entry and returns its znode.
func nodeOf(b *Browser, opener string) string {
	b.t.Helper()
	b.Click(opener)
	b.Until(`document.querySelector("dialog[open] pre") !== null`)
	node := strings.TrimSpace(b.Text("dialog pre"))
	Eval[any](b, `document.querySelector("dialog").close()`)
	b.Until(`document.querySelector("dialog") === null`)
	return node
}
