package zkserver

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// TestMaxWatchesIsEnforced sets the maximum number of watches from one connection and from a
// hundred, and fires some. The server refuses one more.
func TestMaxWatchesIsEnforced(t *testing.T) {
	for _, conns := range []int{1, 100} {
		t.Run(fmt.Sprint(conns), func(t *testing.T) {
			n := scale(50_000, 1_000_000)
			g := startOverload(t, func(o *Options) { o.MaxWatches, o.MaxWatchesPerConn = n, n })
			clients := make([]*rawClient, conns)
			for i := range clients {
				clients[i] = login(t, g.s, time.Hour)
				setWatchesOn(clients[i], n/conns)
			}
			if got := g.s.Stats().Watches; got != n {
				t.Errorf("%d watches, want %d", got, n)
			}
			c := clients[0]
			if _, err := c.try(wire.OpExists, &wire.ExistsRequest{Path: "/one-more", Watch: true}); err != wire.ErrQuotaExceeded {
				t.Errorf("one more watch: %v", err)
			}
			c.create("/w7", wire.ModePersistent)
			for i, c := range clients {
				if c.do(wire.OpPing, nil); len(c.events) != 1 {
					t.Errorf("client %d has %d events", i, len(c.events))
				}
			}
			g.finish(uint64(n) * 600)
			g.closeAttackers(clients)
			for g.s.Stats().Watches > 0 { // the server removes them in parts
				runtime.Gosched()
			}
		})
	}
}

// setWatchesOn sets watches on n missing nodes.
func setWatchesOn(c *rawClient, n int) {
	var b []byte
	for i := range n {
		b = wire.AppendRequest(b, int32(i), wire.OpExists, &wire.ExistsRequest{Path: fmt.Sprint("/w", i), Watch: true})
	}
	go c.nc.Write(b) // ends when the server has read all
	if got := c.answers(n); got != n {
		c.t.Errorf("%d of %d watches were set", got, n)
	}
}

// TestMaxDataBoundsLargeNodes fills the server with nodes of a megabyte.
func TestMaxDataBoundsLargeNodes(t *testing.T) {
	n, most := scale(60, 3000), scale(20, 1000)
	const size = 1_000_000
	g := startOverload(t, func(o *Options) { o.MaxData = int64(most) * (size + 1000) })
	c := login(t, g.s, time.Hour)
	data, made := make([]byte, size), 0
	for i := range n {
		_, err := c.try(wire.OpCreate, &wire.CreateRequest{Path: fmt.Sprint("/big", i), Data: data, ACL: openACL()})
		switch {
		case err == nil:
			made++
		case err != wire.ErrQuotaExceeded:
			t.Fatal(err)
		}
	}
	if made != most {
		t.Errorf("%d nodes of a megabyte, want %d", made, most)
	}
	for i := range min(made, 200) {
		if got := c.do(wire.OpGetData, &wire.GetDataRequest{Path: fmt.Sprint("/big", i)}).(*wire.GetDataResponse); len(got.Data) != size {
			t.Errorf("node %d has %d bytes", i, len(got.Data))
		}
	}
	for i := range made {
		c.do(wire.OpDelete, &wire.DeleteRequest{Path: fmt.Sprint("/big", i), Version: -1})
		if i == 0 {
			g.finish(uint64(most)*size*5/4 + 32<<20)
		}
	}
	if left := g.s.Stats().DataBytes; left > 1000 {
		t.Errorf("%d bytes of data after all was deleted", left)
	}
}

// TestSetWatchesFiresOrRestores sends a megabyte of watches at a time on missing nodes. Data
// watches fire, and exist watches stay.
func TestSetWatchesFiresOrRestores(t *testing.T) {
	n := scale(6, 500)
	g := startOverload(t, func(*Options) {})
	c := login(t, g.s, time.Hour)
	var paths []string
	for i := range 60_000 {
		paths = append(paths, fmt.Sprint("/p", i))
	}
	for i := range n {
		req := &wire.SetWatches{DataWatches: []string{}, ExistWatches: []string{}, ChildWatches: []string{}}
		if i%2 == 0 {
			req.DataWatches = paths
		} else {
			req.ExistWatches = paths
		}
		c.events = nil
		c.do(wire.OpSetWatches, req)
		if want := len(paths) * ((i + 1) % 2); len(c.events) != want {
			t.Fatalf("%d events, want %d", len(c.events), want)
		}
	}
	g.finish(64 << 20)
	g.closeAttackers([]*rawClient{c})
}

// TestMultiOperationsAreLimited sends multis with the maximum number of operations. The server
// refuses one operation more.
func TestMultiOperationsAreLimited(t *testing.T) {
	const most = 5_000
	n := scale(20_000, 100_000)
	g := startOverload(t, func(o *Options) { o.MaxFrame = 64 << 20 })
	c := login(t, g.s, time.Hour)
	var multis []*wire.MultiRequest
	for from := 0; from < n; from += most {
		creates, deletes := new(wire.MultiRequest), new(wire.MultiRequest)
		for i := from; i < from+most; i++ {
			path := fmt.Sprint("/m", i)
			creates.Ops = append(creates.Ops, wire.MultiOp{Op: wire.OpCreate, Req: &wire.CreateRequest{Path: path, ACL: openACL()}})
			deletes.Ops = append(deletes.Ops, wire.MultiOp{Op: wire.OpDelete, Req: &wire.DeleteRequest{Path: path, Version: -1}})
		}
		multis = append(multis, creates, deletes)
	}
	for range 3 {
		for _, m := range multis {
			if got := c.do(wire.OpMulti, m).(*wire.MultiResponse); len(got.Results) != most || got.Results[most-1].Err != wire.ErrOK {
				t.Errorf("%d results", len(got.Results))
			}
		}
	}
	if _, err := c.try(wire.OpMulti, &wire.MultiRequest{Ops: append(multis[0].Ops, multis[1].Ops[0])}); err != wire.ErrBadArguments {
		t.Errorf("a multi with one more operation: %v", err)
	}
	g.finish(64<<20 + most*1500)
	g.closeAttackers([]*rawClient{c})
}

// TestPathDepthIsLimited creates a path of the maximum depth, with a recursive watch, and
// deletes it. The server refuses a deeper path.
func TestPathDepthIsLimited(t *testing.T) {
	const n = 512
	g := startOverload(t, func(*Options) {})
	c := login(t, g.s, time.Hour)
	c.do(wire.OpAddWatch, &wire.AddWatchRequest{Path: "/d", Mode: 1})
	for i := 1; i <= n; i++ {
		c.create(strings.Repeat("/d", i), wire.ModePersistent)
	}
	for _, mode := range []wire.CreateMode{wire.ModePersistent, wire.ModeEphemeralSequential} {
		deeper := &wire.CreateRequest{Path: strings.Repeat("/d", n+1), ACL: openACL(), Flags: mode}
		if _, err := c.try(wire.OpCreate, deeper); err != wire.ErrBadArguments {
			t.Errorf("a path of %d names: %v", n+1, err)
		}
	}
	got := c.do(wire.OpGetAllChildrenNumber, &wire.GetAllChildrenNumberRequest{Path: "/d"}).(*wire.GetAllChildrenNumberResponse)
	if got.TotalNumber != int32(n-1) {
		t.Errorf("%d nodes below the first, want %d", got.TotalNumber, n-1)
	}
	for i := n; i > 0; i-- {
		c.do(wire.OpDelete, &wire.DeleteRequest{Path: strings.Repeat("/d", i), Version: -1})
	}
	if len(c.events) != 2*n {
		t.Errorf("%d events of %d changes", len(c.events), 2*n)
	}
	c.events = nil
	g.finish(64 << 20)
	g.closeAttackers([]*rawClient{c})
}

// TestMultiReadAnswerIsLimited sends short requests whose answers would have gigabytes.
func TestMultiReadAnswerIsLimited(t *testing.T) {
	n, ops, children := scale(2, 100), scale(2000, 10_000), scale(500, 5000)
	g := startOverload(t, func(o *Options) { o.MaxReply = scale(4<<20, 64<<20) })
	c := login(t, g.s, time.Hour)
	c.do(wire.OpCreate, &wire.CreateRequest{Path: "/b", Data: make([]byte, 1_000_000), ACL: openACL()})
	for i := range children {
		c.create(fmt.Sprint("/b/child", i), wire.ModePersistent)
	}
	var gets, lists wire.MultiReadRequest
	for range ops {
		gets.Ops = append(gets.Ops, wire.MultiOp{Op: wire.OpGetData, Req: &wire.GetDataRequest{Path: "/b"}})
		lists.Ops = append(lists.Ops, wire.MultiOp{Op: wire.OpGetChildren, Req: &wire.GetChildrenRequest{Path: "/b"}})
	}
	for range n {
		for _, req := range []*wire.MultiReadRequest{&gets, &lists} {
			if _, err := c.try(wire.OpMultiRead, req); err != wire.ErrQuotaExceeded {
				t.Fatalf("%d long answers in one: %v", ops, err)
			}
		}
	}
	g.finish(64 << 20)
	g.closeAttackers([]*rawClient{c})
}

// TestLongACLIsRefused sends access control lists that take long to check.
func TestLongACLIsRefused(t *testing.T) {
	n := scale(10, 300)
	g := startOverload(t, func(*Options) {})
	c := login(t, g.s, time.Hour)
	list := make([]wire.ACL, 40_000)
	for i := range list {
		list[i] = wire.ACL{Perms: wire.Perm(i), Scheme: "world", ID: "anyone"}
	}
	for range n {
		if _, err := c.try(wire.OpCreate, &wire.CreateRequest{Path: "/l", ACL: list}); err != wire.ErrInvalidACL {
			t.Fatalf("a list of 40,000: %v", err)
		}
	}
	g.finish(64 << 20)
	g.closeAttackers([]*rawClient{c})
}
