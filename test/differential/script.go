package differential

import (
	"fmt"
	"math/rand/v2"

	"github.com/zklock/zklock/internal/wire"
)

// A step is one request of a script, by one of the sessions.
type step struct {
	session int
	op      wire.OpCode
	req     wire.Record
	raw     []byte // instead of req: a malformed body
}

func (s step) String() string {
	if s.raw != nil {
		return fmt.Sprintf("session %d: %v raw %x", s.session, s.op, s.raw)
	}
	return fmt.Sprintf("session %d: %v %s", s.session, s.op, show(s.req))
}

// writer makes random steps over a small tree, so that they meet.
type writer struct {
	r        *rand.Rand
	sessions int
}

func (w *writer) one(choices ...string) string { return choices[w.r.IntN(len(choices))] }

func (w *writer) path() string {
	switch w.r.IntN(40) {
	case 0:
		return w.one("", "/", "a", "//", "/a/", "/a//b", "/./a", "/a/..", "/a\x00b", "/\u0085", "/\ue000", "/zookeeper", "/zookeeper/quota", "/zookeeper/config")
	case 1, 2, 3:
		return w.one("/a", "/b", "/c")
	}
	return w.one("/t/a", "/t/b", "/t/a/x", "/t/a/y", "/t/b/x", "/t/c", "/t/a/x/deep", "/t", "/t/e", "/t/b/s0000000001", "/t/a/s0000000000")
}

func (w *writer) version() int32 {
	if w.r.IntN(2) == 0 {
		return -1
	}
	return int32(w.r.IntN(4)) - w.r.Int32N(2)*w.r.Int32N(3)
}

func (w *writer) data() []byte {
	switch w.r.IntN(4) {
	case 0:
		return nil
	case 1:
		return []byte{}
	}
	return []byte(w.one("x", "some data", "more\x00data"))
}

func (w *writer) acl() []wire.ACL {
	open := wire.ACL{Perms: wire.PermAll, Scheme: "world", ID: "anyone"}
	switch w.r.IntN(24) {
	case 0:
		return nil
	case 1:
		return []wire.ACL{}
	case 2:
		return []wire.ACL{{Perms: wire.PermRead, Scheme: "world", ID: "anyone"}}
	case 3:
		return []wire.ACL{{Perms: wire.PermAll, Scheme: "auth", ID: ""}}
	case 4:
		return []wire.ACL{{Perms: wire.PermAll, Scheme: "digest", ID: w.one("u:x1nq8J5GOJVPY6zgzhtTtA9izLc=", "nocolon", "a:b:c", "")}}
	case 5:
		return []wire.ACL{{Perms: wire.PermAll, Scheme: "ip", ID: w.one("127.0.0.1", "10.0.0.0/8", "127.0.0.0/8", "127.0.0.1/33", "nonsense", "")}, open}
	case 6:
		return []wire.ACL{{Perms: wire.PermAll, Scheme: w.one("nobody", ""), ID: "x"}}
	case 7:
		return []wire.ACL{open, open, {Perms: wire.PermRead, Scheme: "world", ID: "anyone"}}
	case 8:
		return []wire.ACL{{Perms: wire.PermAll, Scheme: "world", ID: w.one("someone", "")}}
	case 9:
		return []wire.ACL{{Perms: wire.Perm(w.r.IntN(32)), Scheme: "world", ID: "anyone"}}
	}
	return []wire.ACL{open}
}

func (w *writer) createPath(mode wire.CreateMode) string {
	if mode.Sequential() && w.r.IntN(3) > 0 {
		return w.one("/t/a/s", "/t/b/s", "/t/", "/t/a/", "/s")
	}
	return w.path()
}

// create returns one of the four creates.
func (w *writer) create() (wire.OpCode, wire.Record) {
	mode := wire.CreateMode(w.r.IntN(4))
	req := &wire.CreateRequest{Path: w.createPath(mode), Data: w.data(), ACL: w.acl(), Flags: mode}
	switch w.r.IntN(10) {
	case 0:
		req.Flags = wire.ModeContainer
		return wire.OpCreateContainer, req
	case 1:
		mode := wire.ModePersistentTTL + wire.CreateMode(w.r.IntN(2))
		ttl := []int64{1_000_000, 0, -1, 1 << 40, 1}[w.r.IntN(5)]
		if ttl == 1 {
			ttl = 100_000
		}
		return wire.OpCreateTTL, &wire.CreateTTLRequest{Path: w.createPath(mode), Data: w.data(), ACL: w.acl(), Flags: mode, TTL: ttl}
	case 2:
		req.Flags = wire.CreateMode(w.r.IntN(9))
		return wire.OpCreate2, req
	case 3, 4, 5:
		return wire.OpCreate, req
	}
	return wire.OpCreate2, req
}

// change returns an operation that a multi may have as well.
func (w *writer) change() (wire.OpCode, wire.Record) {
	switch w.r.IntN(8) {
	case 0, 1:
		return wire.OpDelete, &wire.DeleteRequest{Path: w.path(), Version: w.version()}
	case 2, 3:
		return wire.OpSetData, &wire.SetDataRequest{Path: w.path(), Data: w.data(), Version: w.version()}
	}
	return w.create()
}

func (w *writer) multi() (wire.OpCode, wire.Record) {
	if w.r.IntN(4) == 0 {
		m := &wire.MultiReadRequest{}
		for range w.r.IntN(4) {
			if w.r.IntN(2) == 0 {
				m.Ops = append(m.Ops, wire.MultiOp{Op: wire.OpGetData, Req: &wire.GetDataRequest{Path: w.path()}})
			} else {
				m.Ops = append(m.Ops, wire.MultiOp{Op: wire.OpGetChildren, Req: &wire.GetChildrenRequest{Path: w.path()}})
			}
		}
		return wire.OpMultiRead, m
	}
	m := &wire.MultiRequest{}
	for range w.r.IntN(5) {
		op, req := w.change()
		if w.r.IntN(4) == 0 {
			op, req = wire.OpCheck, &wire.CheckVersionRequest{Path: w.path(), Version: w.version()}
		}
		m.Ops = append(m.Ops, wire.MultiOp{Op: op, Req: req})
	}
	return wire.OpMulti, m
}

// read returns an operation that changes nothing but, perhaps, watches.
func (w *writer) read() (wire.OpCode, wire.Record) {
	watch := w.r.IntN(2) == 0
	switch w.r.IntN(17) {
	case 16:
		return w.setWatches()
	case 0, 1:
		return wire.OpExists, &wire.ExistsRequest{Path: w.path(), Watch: watch}
	case 2, 3:
		return wire.OpGetChildren, &wire.GetChildrenRequest{Path: w.path(), Watch: watch}
	case 4, 5:
		return wire.OpGetChildren2, &wire.GetChildren2Request{Path: w.path(), Watch: watch}
	case 6:
		return wire.OpGetACL, &wire.GetACLRequest{Path: w.path()}
	case 7:
		return wire.OpSync, &wire.SyncRequest{Path: w.path()}
	case 8:
		return wire.OpAddWatch, &wire.AddWatchRequest{Path: w.path(), Mode: wire.AddWatchMode(w.r.IntN(3))}
	case 9:
		return wire.OpRemoveWatches, &wire.RemoveWatchesRequest{Path: w.path(), Type: wire.WatcherType(1 + w.r.IntN(5))}
	case 10:
		return wire.OpCheckWatches, &wire.CheckWatchesRequest{Path: w.path(), Type: wire.WatcherType(1 + w.r.IntN(5))}
	case 11:
		return wire.OpGetEphemerals, &wire.GetEphemeralsRequest{PrefixPath: w.one("/", "/t", "/t/a", "")}
	case 12:
		return wire.OpGetAllChildrenNumber, &wire.GetAllChildrenNumberRequest{Path: w.path()}
	case 13:
		return wire.OpWhoAmI, nil
	}
	return wire.OpGetData, &wire.GetDataRequest{Path: w.path(), Watch: watch}
}

// setWatches is what a client sends after a reconnect. Its zxid counts from the
// script's beginning, and is made absolute for each side.
func (w *writer) setWatches() (wire.OpCode, wire.Record) {
	paths := func() []string {
		list := []string{}
		for range w.r.IntN(3) {
			list = append(list, w.one("/t/a", "/t/b", "/t/a/x", "/t/c", "/t/missing"))
		}
		return list
	}
	return wire.OpSetWatches2, &wire.SetWatches2{
		RelativeZxid: w.r.Int64N(900), DataWatches: paths(), ExistWatches: paths(), ChildWatches: paths(),
		PersistentWatches: paths(), PersistentRecursiveWatches: paths(),
	}
}

// next returns a random step.
func (w *writer) next() step {
	s := step{session: w.r.IntN(w.sessions)}
	switch n := w.r.IntN(100); {
	case n < 45:
		s.op, s.req = w.change()
	case n < 55:
		s.op, s.req = w.multi()
	case n < 58:
		s.op, s.req = wire.OpSetACL, &wire.SetACLRequest{Path: w.path(), ACL: w.acl(), Version: w.version()}
	case n < 59:
		s.op, s.req = wire.OpAuth, &wire.AuthPacket{Scheme: "digest", Auth: []byte(w.one("u:p", "v:q"))}
	case n < 60 && w.r.IntN(3) == 0:
		s.op = wire.OpCloseSession
	case n < 60:
		s.op, s.raw = []wire.OpCode{wire.OpCreate, wire.OpDelete, wire.OpGetData, wire.OpMulti, wire.OpSetData, wire.OpExists}[w.r.IntN(6)], []byte{0, 0, 0, 9, 'x'}
	default:
		s.op, s.req = w.read()
	}
	return s
}
