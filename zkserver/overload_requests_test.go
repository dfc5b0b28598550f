package zkserver

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// maxTurn bounds how long one request may delay all others. On a busy machine a turn may take
// longer: at the short size, the test allows for that.
const maxTurn = 50 * time.Millisecond

// expensiveRequest is an operation at its most expensive. Cheap requests prepare it.
type expensiveRequest struct {
	name    string
	options func(*Options)
	// prepare returns the attack. The attack returns when the server has finished all of it.
	prepare func(g *overload, c *rawClient, n int) (attack func())
}

// TestExpensiveRequestsDoNotDelayOtherClients sends each operation at its worst while another
// client creates, deletes, and reads. No turn of the server may be longer than maxTurn. Other
// work of the machine can extend a turn, but rarely the shortest of ten.
func TestExpensiveRequestsDoNotDelayOtherClients(t *testing.T) {
	n := raceShare(scale(200_000, 1_000_000))
	bound := time.Duration(scale(4, 1)) * maxTurn
	if raceDetector() {
		bound *= 10
	}
	for _, d := range expensiveRequests() {
		t.Run(d.name, func(t *testing.T) {
			turn, stall := time.Hour, time.Hour
			for range 10 {
				a, b := d.run(t, n)
				if turn, stall = min(turn, a), min(stall, b); turn <= bound/2 {
					break
				}
			}
			t.Logf("longest turn %v, longest stall %v", turn.Round(10*time.Microsecond), stall.Round(10*time.Microsecond))
			if turn > bound {
				t.Errorf("a turn of %v, want at most %v", turn, bound)
			}
		})
	}
}

// raceShare returns n, or a fifth of it with the race detector, which makes tests many times
// slower.
func raceShare(n int) int {
	if raceDetector() {
		return n / 5
	}
	return n
}

// raceDetector reports whether the test runs with the race detector.
func raceDetector() bool {
	info, _ := debug.ReadBuildInfo()
	return info != nil && slices.ContainsFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == "-race" && s.Value == "true" })
}

// run returns the longest turn of an attack, and the longest that another client waited for an
// answer.
func (d *expensiveRequest) run(t *testing.T, n int) (turn, stall time.Duration) {
	g := startOverload(t, func(o *Options) {
		if d.options != nil {
			d.options(o)
		}
	})
	c := login(t, g.s, time.Hour)
	attack := d.prepare(g, c, n)
	g.takeSlowest()
	g.s.runOnLoop(func() { g.s.loop.longestTurn = 0 })
	attack()
	stall = g.takeSlowest()
	turn = g.s.Stats().LongestTurn
	close(g.stop)
	g.done.Wait()
	g.s.Close()
	return turn, stall
}

// createInMultis creates n nodes with short multis.
func (c *rawClient) createInMultis(n int, mode wire.CreateMode, path func(i int) string) {
	c.t.Helper()
	most := 200_000 / (len(path(0)) + 100)
	for i := 0; i < n; i += most {
		var m wire.MultiRequest
		for k := i; k < min(i+most, n); k++ {
			req := &wire.CreateRequest{Path: path(k), ACL: openACL(), Flags: mode}
			m.Ops = append(m.Ops, wire.MultiOp{Op: wire.OpCreate, Req: req})
		}
		res := c.do(wire.OpMulti, &m).(*wire.MultiResponse).Results
		if last := res[len(res)-1]; last.Op == wire.OpError {
			c.t.Fatalf("create %s: %v", path(i), res[0].Err)
		}
	}
}

// fillMulti returns a multi with as many operations as fit into a frame.
func fillMulti(op func(i int) wire.MultiOp) *wire.MultiRequest {
	m := new(wire.MultiRequest)
	for size := 0; ; {
		o := op(len(m.Ops))
		if size += 9 + len(o.Req.Append(nil)); size > 1_000_000 || len(m.Ops) == 5_000 {
			return m
		}
		m.Ops = append(m.Ops, o)
	}
}

// deepPath returns a path of the given number of names, each one byte long.
func deepPath(names int) string { return strings.Repeat("/d", names) }

// mkdirs creates a node and all its ancestors.
func (c *rawClient) mkdirs(path string) {
	for i := 1; i <= len(path); i++ {
		if i == len(path) || path[i] == '/' {
			c.do(wire.OpCreate, &wire.CreateRequest{Path: path[:i], ACL: openACL()}, wire.ErrNodeExists)
		}
	}
}

// watchAncestors sets recursive watches on a path and all its ancestors.
func (c *rawClient) watchAncestors(path string) {
	for i := 1; i <= len(path); i++ {
		if i == len(path) || path[i] == '/' {
			c.do(wire.OpAddWatch, &wire.AddWatchRequest{Path: path[:i], Mode: wire.AddWatchPersistentRecursive})
		}
	}
}

// eachAttacker calls each for n new clients, which then read everything.
func (g *overload) eachAttacker(n int, each func(c *rawClient)) {
	for range n {
		c := login(g.t, g.s, time.Hour)
		each(c)
		go c.drain() // ends with the connection
	}
}

func expensiveRequests() []expensiveRequest {
	return slices.Concat(expensiveReads(), expensiveEnds(), expensiveWatches(), expensiveMultis())
}

func expensiveReads() []expensiveRequest {
	createChildren := func(c *rawClient, n int) { // with short names
		c.create("/many", wire.ModePersistent)
		c.createInMultis(n, wire.ModePersistent, func(i int) string { return fmt.Sprint("/many/", i) })
	}
	doLater := func(c *rawClient, op wire.OpCode, req wire.Record) func() {
		return func() { c.do(op, req, wire.ErrQuotaExceeded) }
	}
	return []expensiveRequest{
		{"getAllChildrenNumber", nil, func(g *overload, c *rawClient, n int) func() {
			createChildren(c, n)
			return doLater(c, wire.OpGetAllChildrenNumber, &wire.GetAllChildrenNumberRequest{Path: "/many"})
		}},
		{"getChildren", nil, func(g *overload, c *rawClient, n int) func() {
			createChildren(c, n)
			return doLater(c, wire.OpGetChildren, &wire.GetChildrenRequest{Path: "/many"})
		}},
		{"getChildren of many clients of an address", nil, func(g *overload, c *rawClient, n int) func() {
			createChildren(c, n/10)
			addr, all := listenTCP(g.t, g.s), make(chan int)
			return func() {
				for range 20 {
					go func() { all <- listThreeTimes(g, addr, "/many") }()
				}
				for range 20 {
					if got := <-all; got != 3 {
						g.t.Errorf("%d answers of 3", got)
					}
				}
			}
		}},
		{"getChildren of many clients without an address", nil, func(g *overload, c *rawClient, n int) func() {
			createChildren(c, n/10)
			var all []*rawClient
			for range 20 {
				all = append(all, login(g.t, g.s, time.Hour))
			}
			return func() {
				var done sync.WaitGroup
				for _, c := range all {
					done.Go(func() {
						for range 3 {
							c.do(wire.OpGetChildren, &wire.GetChildrenRequest{Path: "/many"})
						}
					})
				}
				done.Wait()
			}
		}},
		{"multiRead of children", nil, func(g *overload, c *rawClient, n int) func() {
			createChildren(c, n)
			return doLater(c, wire.OpMultiRead, (*wire.MultiReadRequest)(fillMulti(func(int) wire.MultiOp {
				return wire.MultiOp{Op: wire.OpGetChildren, Req: &wire.GetChildrenRequest{Path: "/many"}}
			})))
		}},
		{"multiRead of data", nil, func(g *overload, c *rawClient, n int) func() {
			createChildren(c, n)
			return doLater(c, wire.OpMultiRead, (*wire.MultiReadRequest)(fillMulti(func(i int) wire.MultiOp {
				return wire.MultiOp{Op: wire.OpGetData, Req: &wire.GetDataRequest{Path: fmt.Sprint("/many/", i%n)}}
			})))
		}},
		{"multiRead of large data", nil, func(g *overload, c *rawClient, n int) func() {
			c.do(wire.OpCreate, &wire.CreateRequest{Path: "/large", Data: make([]byte, 1_000_000), ACL: openACL()})
			return doLater(c, wire.OpMultiRead, (*wire.MultiReadRequest)(fillMulti(func(int) wire.MultiOp {
				return wire.MultiOp{Op: wire.OpGetData, Req: &wire.GetDataRequest{Path: "/large"}}
			})))
		}},
		{"getEphemerals", nil, func(g *overload, c *rawClient, n int) func() {
			c.createInMultis(n, wire.ModeEphemeral, func(i int) string { return fmt.Sprint("/e", i) })
			return doLater(c, wire.OpGetEphemerals, &wire.GetEphemeralsRequest{PrefixPath: "/e"})
		}},
		{"getEphemerals of long paths", nil, func(g *overload, c *rawClient, n int) func() {
			long, order := "/"+strings.Repeat("x", 4000), rand.Perm(45_000)
			c.createInMultis(len(order), wire.ModeEphemeral, func(i int) string { return fmt.Sprint(long, order[i]) })
			return doLater(c, wire.OpGetEphemerals, &wire.GetEphemeralsRequest{PrefixPath: "/"})
		}},
		{"getACL", nil, func(g *overload, c *rawClient, n int) func() {
			c.do(wire.OpCreate, &wire.CreateRequest{Path: "/list", ACL: append(foreignACL(9999, 0), openACL()...)})
			return doLater(c, wire.OpGetACL, &wire.GetACLRequest{Path: "/list"})
		}},
		{"words", func(o *Options) { o.FourLetterWords = []string{"*"} }, func(g *overload, c *rawClient, n int) func() {
			c.createInMultis(n, wire.ModeEphemeral, func(i int) string { return fmt.Sprint("/e", i) })
			setWatchesOn(c, n/2)
			return func() {
				for _, w := range []string{"mntr", "srvr", "stat", "cons", "dump", "wchs", "wchp", "wchc"} {
					word(g.t, g.s, w)
				}
			}
		}},
		{"words of many clients", func(o *Options) { o.FourLetterWords = []string{"*"} }, func(g *overload, c *rawClient, n int) func() {
			setWatchesOn(c, 4000)
			return func() {
				var done sync.WaitGroup
				for i := range 800 {
					c := open(g.t, g.s)
					c.write([]byte([]string{"mntr", "wchs", "wchp", "cons"}[i%4]))
					done.Go(func() { _, _ = io.Copy(io.Discard, c.br) })
				}
				done.Wait()
			}
		}},
	}
}

// foreignACL returns an access control list for n users, none of them a client. Lists with
// different numbers are different.
func foreignACL(n, number int) (list []wire.ACL) {
	for i := range n {
		list = append(list, wire.ACL{Perms: wire.PermAll, Scheme: "digest", ID: fmt.Sprintf("user%d:%020d", i, number)})
	}
	return list
}

// manyIdentities authenticates as many identities as a connection may have, and returns the
// access control list of the last one.
func (c *rawClient) manyIdentities() []wire.ACL {
	for i := range 62 {
		c.do(wire.OpAuth, &wire.AuthPacket{Scheme: "digest", Auth: fmt.Appendf(nil, "u%02d:x", i)})
	}
	const path = "/identities"
	c.do(wire.OpCreate, &wire.CreateRequest{Path: path, ACL: []wire.ACL{{Perms: wire.PermAll, Scheme: "auth"}}}, wire.ErrNodeExists)
	list := c.do(wire.OpGetACL, &wire.GetACLRequest{Path: path}).(*wire.GetACLResponse).ACL
	return list[len(list)-1:]
}

// listThreeTimes sends three requests for children on a new connection, and returns the number
// of answers.
func listThreeTimes(g *overload, addr, path string) (answers int) {
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		return 0
	}
	c := newRawClient(g.t, nc)
	b := wire.AppendRecord(nil, &wire.ConnectRequest{Timeout: 60_000})
	for xid := range int32(3) {
		b = wire.AppendRequest(b, xid, wire.OpGetChildren, &wire.GetChildrenRequest{Path: path})
	}
	nc.Write(b)
	for range 4 { // with the handshake's answer
		if _, err := c.frame(); err == nil {
			answers++
		}
	}
	nc.Close()
	return answers - 1
}

func expensiveEnds() []expensiveRequest {
	// deepEphemerals creates n ephemeral nodes of c below a deep node, with recursive watches on
	// its ancestors.
	deepEphemerals := func(g *overload, c *rawClient, n int) {
		top := login(g.t, g.s, time.Hour)
		top.mkdirs(deepPath(500))
		c.createInMultis(n, wire.ModeEphemeral, func(i int) string { return fmt.Sprint(deepPath(500), "/", i) })
		g.eachAttacker(3, func(c *rawClient) { c.watchAncestors(deepPath(500)) })
	}
	awaitNodes := func(g *overload, nodes int) {
		g.await("the end of the nodes", func() bool { return g.s.Stats().Nodes <= nodes })
	}
	return []expensiveRequest{
		{"closeSession", nil, func(g *overload, c *rawClient, n int) func() {
			c.createInMultis(n, wire.ModeEphemeral, func(i int) string { return fmt.Sprint("/e", i) })
			return func() { c.do(wire.OpCloseSession, nil) }
		}},
		{"closeSession with deep nodes", nil, func(g *overload, c *rawClient, n int) func() {
			deepEphemerals(g, c, min(n, 12_000))
			return func() { c.do(wire.OpCloseSession, nil) }
		}},
		{"closeSession with long paths", nil, func(g *overload, c *rawClient, n int) func() {
			for i := range 16 {
				c.create(fmt.Sprint("/", strings.Repeat("x", 130_000), i), wire.ModeEphemeral)
			}
			g.eachAttacker(60, func(c *rawClient) {
				c.do(wire.OpAddWatch, &wire.AddWatchRequest{Path: "/", Mode: wire.AddWatchPersistentRecursive})
			})
			return func() { c.do(wire.OpCloseSession, nil) }
		}},
		{"closeSession with few nodes whose paths are deep and long", nil, func(g *overload, _ *rawClient, _ int) func() {
			top, path := login(g.t, g.s, time.Hour), ""
			for range 500 { // or as many as the server accepts
				next := path + "/" + strings.Repeat("d", 1990)
				if _, err := top.try(wire.OpCreate, &wire.CreateRequest{Path: next, ACL: openACL()}); err != nil {
					break
				}
				path = next
			}
			top.watchAncestors(path)
			go top.drain() // ends with the connection
			c := login(g.t, g.s, time.Hour)
			for i := range 16 {
				c.create(fmt.Sprint(path[:len(path)-1], i), wire.ModeEphemeral)
			}
			return func() { c.do(wire.OpCloseSession, nil) }
		}},
		{"closeSession with watchers that have many identities", nil, func(g *overload, c *rawClient, n int) func() {
			list := append(foreignACL(9999, 0), c.manyIdentities()...)
			c.do(wire.OpCreate, &wire.CreateRequest{Path: "/p", ACL: list})
			for i := range 80 {
				c.do(wire.OpCreate, &wire.CreateRequest{Path: fmt.Sprint("/p/", i), ACL: list, Flags: wire.ModeEphemeral})
			}
			g.eachAttacker(60, func(c *rawClient) {
				c.manyIdentities()
				c.do(wire.OpAddWatch, &wire.AddWatchRequest{Path: "/p", Mode: wire.AddWatchPersistent})
				for i := range 80 {
					c.do(wire.OpAddWatch, &wire.AddWatchRequest{Path: fmt.Sprint("/p/", i), Mode: wire.AddWatchPersistent})
				}
			})
			return func() { c.do(wire.OpCloseSession, nil) }
		}},
		{"closeSession with few nodes that many clients watch", nil, func(g *overload, _ *rawClient, n int) func() {
			top := login(g.t, g.s, time.Hour)
			top.create("/p", wire.ModePersistent)
			g.eachAttacker(scale(1000, 5000), func(c *rawClient) {
				c.do(wire.OpAddWatch, &wire.AddWatchRequest{Path: "/p", Mode: wire.AddWatchPersistentRecursive})
				c.do(wire.OpAddWatch, &wire.AddWatchRequest{Path: "/p", Mode: wire.AddWatchPersistent})
			})
			c := login(g.t, g.s, time.Hour)
			for i := range 16 {
				c.create(fmt.Sprint("/p/", i), wire.ModeEphemeral)
			}
			return func() { c.do(wire.OpCloseSession, nil) }
		}},
		{"expiry with deep nodes", nil, func(g *overload, _ *rawClient, n int) func() {
			c := login(g.t, g.s, 3*time.Second)
			deepEphemerals(g, c, min(n, 12_000))
			return func() {
				c.nc.Close()
				awaitNodes(g, 600)
			}
		}},
		{"expiry of many sessions", nil, func(g *overload, _ *rawClient, n int) func() {
			n = min(n, 100_000) / 5
			for i := range n {
				c := login(g.t, g.s, 3*time.Second)
				c.create(fmt.Sprint("/e", i), wire.ModeEphemeral)
				c.nc.Close()
			}
			return func() { awaitNodes(g, 10) }
		}},
		{"disconnection with watches", nil, func(g *overload, c *rawClient, n int) func() {
			setWatchesOn(c, n/2)
			return func() {
				c.nc.Close()
				g.await("the end of the watches", func() bool { return g.s.Stats().Watches == 0 })
			}
		}},
		{"sweep of containers", func(o *Options) { o.ContainerCheckInterval = 100 * time.Millisecond }, func(g *overload, c *rawClient, n int) func() {
			c.create("/c", wire.ModePersistent)
			for i := range n / 50 {
				path := fmt.Sprint("/c/", i)
				c.do(wire.OpCreateContainer, &wire.CreateRequest{Path: path, ACL: openACL(), Flags: wire.ModeContainer})
				c.create(path+"/x", wire.ModePersistent)
			}
			return func() {
				for i := range n / 50 {
					c.do(wire.OpDelete, &wire.DeleteRequest{Path: fmt.Sprint("/c/", i, "/x"), Version: -1})
				}
				awaitNodes(g, 10)
			}
		}},
	}
}

func expensiveWatches() []expensiveRequest {
	// short returns as many paths as fit into a frame.
	short := func() (paths []string) {
		for size := 0; size < 1_000_000; size += 4 + len(paths[len(paths)-1]) {
			paths = append(paths, fmt.Sprintf("/%x", len(paths)))
		}
		return paths
	}
	none := []string{}
	return []expensiveRequest{
		{"setWatches that stay", nil, func(g *overload, c *rawClient, n int) func() {
			req := &wire.SetWatches{DataWatches: none, ExistWatches: short(), ChildWatches: none}
			return func() { c.do(wire.OpSetWatches, req) }
		}},
		{"setWatches that fire", nil, func(g *overload, c *rawClient, n int) func() {
			req := &wire.SetWatches{DataWatches: short(), ExistWatches: none, ChildWatches: none}
			return func() { c.do(wire.OpSetWatches, req) }
		}},
		{"ends of many connections with watches", nil, func(g *overload, c *rawClient, n int) func() {
			var all []*rawClient
			for k := range 30 {
				req := &wire.SetWatches{DataWatches: none, ExistWatches: make([]string, n/50), ChildWatches: none}
				for i := range req.ExistWatches {
					req.ExistWatches[i] = fmt.Sprint("/w", k, "-", i)
				}
				all = append(all, login(g.t, g.s, time.Hour))
				all[k].do(wire.OpSetWatches, req)
			}
			return func() {
				g.s.runOnLoop(func() { // one round must see all ends
					for _, c := range all {
						c.nc.Close()
					}
				})
				g.await("the end of the watches", func() bool { return g.s.Stats().Watches == 0 })
			}
		}},
		{"setData with many watchers", nil, func(g *overload, c *rawClient, n int) func() {
			c.create("/w", wire.ModePersistent)
			g.eachAttacker(1000, func(c *rawClient) {
				c.do(wire.OpAddWatch, &wire.AddWatchRequest{Path: "/w", Mode: wire.AddWatchPersistent})
			})
			return func() { c.do(wire.OpSetData, &wire.SetDataRequest{Path: "/w", Version: -1}) }
		}},
		{"multi of changes with watchers", nil, func(g *overload, c *rawClient, n int) func() {
			c.create("/w", wire.ModePersistent)
			g.eachAttacker(60, func(c *rawClient) {
				c.do(wire.OpAddWatch, &wire.AddWatchRequest{Path: "/w", Mode: wire.AddWatchPersistent})
			})
			m := fillMulti(func(int) wire.MultiOp {
				return wire.MultiOp{Op: wire.OpSetData, Req: &wire.SetDataRequest{Path: "/w", Version: -1}}
			})
			return func() {
				for len(m.Ops) > 0 {
					c.do(wire.OpMulti, m)
					m.Ops = m.Ops[:len(m.Ops)/2]
				}
			}
		}},
		{"multi of changes below many ACLs", nil, func(g *overload, c *rawClient, n int) func() {
			own, path := c.manyIdentities(), ""
			for i := range 500 {
				path += "/d"
				c.do(wire.OpCreate, &wire.CreateRequest{Path: path, ACL: append(foreignACL(5, i), own...)})
			}
			g.eachAttacker(60, func(c *rawClient) {
				c.manyIdentities()
				c.do(wire.OpAddWatch, &wire.AddWatchRequest{Path: "/", Mode: wire.AddWatchPersistentRecursive})
			})
			m := new(wire.MultiRequest)
			for range 20 {
				m.Ops = append(m.Ops, wire.MultiOp{Op: wire.OpSetData, Req: &wire.SetDataRequest{Path: path, Version: -1}})
			}
			return func() { c.do(wire.OpMulti, m) }
		}},
		{"setData below long ACLs", nil, func(g *overload, c *rawClient, n int) func() {
			own, path := c.manyIdentities(), ""
			lists := [][]wire.ACL{append(foreignACL(9999, 0), own...), append(foreignACL(9999, 1), own...)}
			for i := range 511 {
				path += "/d"
				c.do(wire.OpCreate, &wire.CreateRequest{Path: path, ACL: lists[i%2]})
			}
			g.eachAttacker(15, func(c *rawClient) {
				c.manyIdentities()
				c.do(wire.OpAddWatch, &wire.AddWatchRequest{Path: "/", Mode: wire.AddWatchPersistentRecursive})
			})
			return func() { c.do(wire.OpSetData, &wire.SetDataRequest{Path: path, Version: -1}) }
		}},
		{"setData with recursive watches on all ancestors", nil, func(g *overload, c *rawClient, n int) func() {
			own, path := c.manyIdentities(), deepPath(511)
			c.mkdirs(deepPath(510))
			c.do(wire.OpCreate, &wire.CreateRequest{Path: path, ACL: append(foreignACL(9999, 0), own...)})
			g.eachAttacker(60, func(c *rawClient) {
				c.manyIdentities()
				c.watchAncestors(path)
			})
			return func() { c.do(wire.OpSetData, &wire.SetDataRequest{Path: path, Version: -1}) }
		}},
		{"multi of changes with watchers that have many identities", nil, func(g *overload, c *rawClient, n int) func() {
			own := c.manyIdentities()
			c.do(wire.OpCreate, &wire.CreateRequest{Path: "/w", ACL: append(foreignACL(3, 0), own...)})
			g.eachAttacker(60, func(c *rawClient) {
				c.manyIdentities()
				c.do(wire.OpAddWatch, &wire.AddWatchRequest{Path: "/w", Mode: wire.AddWatchPersistent})
			})
			m := fillMulti(func(int) wire.MultiOp {
				return wire.MultiOp{Op: wire.OpSetData, Req: &wire.SetDataRequest{Path: "/w", Version: -1}}
			})
			return func() {
				for ; len(m.Ops) > 0; m.Ops = m.Ops[:len(m.Ops)*7/8] {
					c.do(wire.OpMulti, m)
				}
			}
		}},
		{"deep multi after recursive watches were removed", nil, func(g *overload, c *rawClient, n int) func() {
			c.mkdirs(deepPath(500))
			c.createInMultis(800, wire.ModePersistent, func(i int) string { return fmt.Sprint(deepPath(500), "/", i) })
			watcher := login(g.t, g.s, time.Hour)
			watcher.watchAncestors(deepPath(500))
			watcher.do(wire.OpCloseSession, nil)
			c.do(wire.OpAddWatch, &wire.AddWatchRequest{Path: "/elsewhere", Mode: wire.AddWatchPersistentRecursive})
			m := new(wire.MultiRequest)
			for i := range 800 {
				m.Ops = append(m.Ops, wire.MultiOp{Op: wire.OpCreate, Req: &wire.CreateRequest{Path: fmt.Sprint(deepPath(500), "/", i, "/x"), ACL: openACL()}})
			}
			return func() { c.do(wire.OpMulti, m) }
		}},
		{"deep multi with recursive watches", nil, func(g *overload, c *rawClient, n int) func() {
			c.mkdirs(deepPath(500))
			g.eachAttacker(1, func(c *rawClient) { c.watchAncestors(deepPath(500)) })
			m := fillMulti(func(i int) wire.MultiOp {
				return wire.MultiOp{Op: wire.OpCreate, Req: &wire.CreateRequest{Path: fmt.Sprint(deepPath(500), "/", i), ACL: openACL()}}
			})
			return func() { c.do(wire.OpMulti, m) }
		}},
	}
}

func expensiveMultis() []expensiveRequest {
	multi := func(op func(i int) wire.MultiOp) func(*overload, *rawClient, int) func() {
		return func(g *overload, c *rawClient, n int) func() {
			c.create("/m", wire.ModePersistent)
			m := fillMulti(op)
			return func() { c.do(wire.OpMulti, m) }
		}
	}
	return []expensiveRequest{
		{"quotas of a large subtree", nil, func(g *overload, c *rawClient, n int) func() {
			c.create("/many", wire.ModePersistent)
			c.createInMultis(n, wire.ModePersistent, func(i int) string { return fmt.Sprint("/many/", i) })
			c.create("/zookeeper/quota/many", wire.ModePersistent)
			stats := "/zookeeper/quota/many/zookeeper_stats"
			m := new(wire.MultiRequest)
			for range 16 {
				m.Ops = append(m.Ops,
					wire.MultiOp{Op: wire.OpCreate, Req: &wire.CreateRequest{Path: stats, Data: []byte("count=0"), ACL: openACL()}},
					wire.MultiOp{Op: wire.OpDelete, Req: &wire.DeleteRequest{Path: stats, Version: -1}})
			}
			return func() { c.do(wire.OpMulti, m) }
		}},
		{"multi of changes below a quota", func(o *Options) { o.EnforceQuota = true }, func(g *overload, c *rawClient, n int) func() {
			c.create("/q", wire.ModePersistent)
			c.create("/zookeeper/quota/q", wire.ModePersistent)
			for _, name := range []string{"zookeeper_limits", "zookeeper_stats"} {
				path := "/zookeeper/quota/q/" + name
				c.do(wire.OpCreate, &wire.CreateRequest{Path: path, Data: []byte("count=1"), ACL: openACL()})
				text := "count=1"
				for i := range 40 { // as many numbers as the server accepts
					text += fmt.Sprintf(",%c=1", 'A'+i)
					if _, err := c.try(wire.OpSetData, &wire.SetDataRequest{Path: path, Data: []byte(text), Version: -1}); err != nil {
						break
					}
				}
			}
			m := fillMulti(func(int) wire.MultiOp {
				return wire.MultiOp{Op: wire.OpSetData, Req: &wire.SetDataRequest{Path: "/q", Version: -1}}
			})
			return func() { c.do(wire.OpMulti, m) }
		}},
		{"multi of creates", nil, multi(func(i int) wire.MultiOp {
			return wire.MultiOp{Op: wire.OpCreate, Req: &wire.CreateRequest{Path: fmt.Sprintf("/%x", i), ACL: openACL()}}
		})},
		{"multi of creates with an ACL each", nil, multi(func(i int) wire.MultiOp {
			acl := append(openACL(), wire.ACL{Perms: wire.PermRead, Scheme: "digest", ID: fmt.Sprintf("%x:x", i)})
			return wire.MultiOp{Op: wire.OpCreate, Req: &wire.CreateRequest{Path: fmt.Sprintf("/%x", i), ACL: acl}}
		})},
		{"multi of sequential creates", nil, multi(func(i int) wire.MultiOp {
			return wire.MultiOp{Op: wire.OpCreate, Req: &wire.CreateRequest{Path: "/", ACL: openACL(), Flags: wire.ModeEphemeralSequential}}
		})},
		{"multi of checks", nil, multi(func(int) wire.MultiOp {
			return wire.MultiOp{Op: wire.OpCheck, Req: &wire.CheckVersionRequest{Path: "/m", Version: -1}}
		})},
		{"multi of changes", nil, multi(func(int) wire.MultiOp {
			return wire.MultiOp{Op: wire.OpSetData, Req: &wire.SetDataRequest{Path: "/m", Version: -1}}
		})},
		{"audited multi of paths with invisible characters", func(o *Options) { o.Audit = true }, multi(func(i int) wire.MultiOp {
			return wire.MultiOp{Op: wire.OpCreate, Req: &wire.CreateRequest{Path: fmt.Sprintf("/%s%d", strings.Repeat("\u200b", 200), i), ACL: openACL()}}
		})},
		{"multi of nodes without ancestors", func(o *Options) { o.EnforceQuota = true }, func(g *overload, c *rawClient, n int) func() {
			c.create("/zookeeper/quota/q", wire.ModePersistent)
			c.do(wire.OpCreate, &wire.CreateRequest{Path: "/zookeeper/quota/q/zookeeper_limits", Data: []byte("count=1,bytes=1"), ACL: openACL()})
			c.do(wire.OpAddWatch, &wire.AddWatchRequest{Path: "/w", Mode: wire.AddWatchPersistentRecursive})
			m := fillMulti(func(i int) wire.MultiOp {
				path := deepPath(min(i+1, 500))
				if i >= 500 {
					path += fmt.Sprint("/", i)
				}
				return wire.MultiOp{Op: wire.OpCreate, Req: &wire.CreateRequest{Path: path, ACL: openACL()}}
			})
			return func() { c.do(wire.OpMulti, m) }
		}},
		{"multi of changes below deep paths", nil, func(g *overload, c *rawClient, n int) func() {
			chains, m := scale(50, 900), new(wire.MultiRequest)
			path := func(i, names int) string { return fmt.Sprintf("/%03x", i) + deepPath(names-1) }
			for names := 1; names <= 511; names++ { // so that the ancestors of a node are not near each other
				c.createInMultis(chains, wire.ModePersistent, func(i int) string { return path(i, names) })
			}
			for i := range chains {
				m.Ops = append(m.Ops, wire.MultiOp{Op: wire.OpSetData, Req: &wire.SetDataRequest{Path: path(i, 511), Data: []byte("x"), Version: -1}})
			}
			return func() {
				for ; len(m.Ops) > 0; m.Ops = m.Ops[:len(m.Ops)*7/8] {
					c.do(wire.OpMulti, m)
				}
			}
		}},
		{"creates and deletes with a long ACL each", nil, func(g *overload, c *rawClient, n int) func() {
			m := new(wire.MultiRequest)
			list := append(foreignACL(9998, 0), openACL()...)
			return func() {
				for i := range scale(50, 950) {
					list[0].ID = fmt.Sprint("user:", i)
					path := fmt.Sprint("/p", i)
					c.do(wire.OpCreate, &wire.CreateRequest{Path: path, ACL: list})
					m.Ops = append(m.Ops, wire.MultiOp{Op: wire.OpDelete, Req: &wire.DeleteRequest{Path: path, Version: -1}})
				}
				c.do(wire.OpMulti, m)
			}
		}},
		{"multi that checks long ACLs", nil, func(g *overload, c *rawClient, n int) func() {
			m, own := new(wire.MultiRequest), c.manyIdentities()
			for i := range 100 {
				path := fmt.Sprint("/p", i)
				c.do(wire.OpCreate, &wire.CreateRequest{Path: path, ACL: append(foreignACL(9999, i), own...)})
				m.Ops = append(m.Ops, wire.MultiOp{Op: wire.OpCheck, Req: &wire.CheckVersionRequest{Path: path, Version: -1}})
			}
			return func() { c.do(wire.OpMulti, m) }
		}},
		{"multi that checks permissions", nil, func(g *overload, c *rawClient, n int) func() {
			own := c.manyIdentities()
			for i := range 1000 {
				var list []wire.ACL
				for k := range 15 {
					list = append(list, wire.ACL{Perms: wire.PermAll, Scheme: "digest", ID: fmt.Sprintf("v%02d:%024d%04d", k, k, i)})
				}
				c.do(wire.OpCreate, &wire.CreateRequest{Path: fmt.Sprint("/p", i), ACL: append(list, own...)})
			}
			m := fillMulti(func(i int) wire.MultiOp {
				return wire.MultiOp{Op: wire.OpCheck, Req: &wire.CheckVersionRequest{Path: fmt.Sprint("/p", i%1000), Version: -1}}
			})
			return func() { c.do(wire.OpMulti, m) }
		}},
	}
}
