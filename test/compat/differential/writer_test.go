package differential

import (
	"math"
	"math/rand/v2"

	"github.com/zklock/zklock/internal/wire"
)

// writer writes random scripts for a small tree, so their requests affect the same nodes.
type writer struct {
	r *rand.Rand
	// exclusive means that no other script uses the servers. Then scripts may use shared paths,
	// and the servers do not collect containers.
	exclusive bool
	// strict means that quotas are enforced.
	strict bool
	xid    int32
}

// newWriter returns the writer of the script with a seed.
func newWriter(seed uint64, setup Setup) *writer {
	return &writer{r: rand.New(rand.NewPCG(seed, 7)), exclusive: !setup.Waiting, strict: setup.Strict}
}

// one returns a random choice.
func one[T any](w *writer, choices ...T) T { return choices[w.r.IntN(len(choices))] }

// maybe returns true with a probability of 1/n.
func (w *writer) maybe(n int) bool { return w.r.IntN(n) == 0 }

// below returns a path below the script's root.
func below(path string) string { return placeholder + path }

// oddPaths returns invalid paths, and those of nodes that a client may not create.
func oddPaths() []string {
	return []string{"a", "//", below("/"), below("/a/"), below("/a//b"), below("/./a"), below("/a/.."), below("/..."),
		below("/a\x00b"), below("/\u0085"), below("/\ue000"), below("/\ufff0"), below("/é"),
		below("/a\x1f"), below("/~"), below("/ "), "/zookeeper/config/x"}
}

// sharedPaths returns the paths of nodes that all scripts share.
func sharedPaths() []string {
	return []string{"/", "", "/zookeeper", "/zookeeper/quota", "/zookeeper/config"}
}

// path returns one of few paths, and rarely another one.
func (w *writer) path() string {
	switch n := w.r.IntN(60); {
	case n == 0:
		return one(w, oddPaths()...)
	case n == 1 && w.exclusive:
		return one(w, sharedPaths()...)
	case n < 4 && w.exclusive:
		return w.quotaPath()
	}
	return below(one(w, "", "/a", "/b", "/c", "/e", "/a/x", "/a/y", "/b/x", "/a/x/deep", "/b/s0000000001", "/a/s0000000000", "/c/k", "/missing"))
}

// quotaPath returns the path of a node with a quota of this script.
func (w *writer) quotaPath() string {
	return "/zookeeper/quota" + below(one(w, "", "/a", "/a/x")) +
		one(w, "", "/zookeeper_limits", "/zookeeper_stats", "/zookeeper_limits", "/zookeeper_stats")
}

// quotaData returns valid data of such a node. Other data would end Java's server.
func (w *writer) quotaData() []byte {
	return []byte(one(w, "", "count=3,bytes=20", "count=-1,bytes=-1=;byteHardLimit=30;countHardLimit=4",
		"count=2,bytes=-1=;countHardLimit=-1", "bytes=5", "count=1000,bytes=1000=;byteHardLimit=12"))
}

// isQuota reports whether the data of a node must be quotaData.
func isQuota(path string) bool {
	for _, suffix := range []string{"/zookeeper_limits", "/zookeeper_stats"} {
		if len(path) > len(suffix) && path[len(path)-len(suffix):] == suffix {
			return true
		}
	}
	return false
}

func (w *writer) version() int32 {
	switch w.r.IntN(4) {
	case 0, 1:
		return -1
	case 2:
		return one[int32](w, -2, math.MaxInt32, math.MinInt32, 7)
	}
	return w.r.Int32N(4)
}

// data returns data for the node at path.
func (w *writer) data(path string) []byte {
	if isQuota(path) {
		return w.quotaData()
	}
	return one(w, nil, []byte{}, []byte("x"), []byte("some data"), []byte("more\x00data"), make([]byte, w.r.IntN(3000)))
}

// acl returns an ACL, usually the open one.
func (w *writer) acl() []wire.ACL {
	open := wire.ACL{Perms: wire.PermAll, Scheme: "world", ID: "anyone"}
	digest := one(w, "u:x1nq8J5GOJVPY6zgzhtTtA9izLc=", "v:hCbjf/nrWkoSlW4+IbmRJC/lUPk=")
	lists := [][]wire.ACL{
		nil,
		{},
		{{Perms: wire.PermRead, Scheme: "world", ID: "anyone"}},
		{{Perms: wire.PermAll, Scheme: "auth", ID: one(w, "", "x")}},
		{{Perms: wire.PermAll, Scheme: "auth"}, {Perms: wire.PermRead, Scheme: "world", ID: "anyone"}},
		{{Perms: wire.PermAll, Scheme: "digest", ID: one(w, digest, "nocolon", "a:b:c", "", "a:b:", ":")}},
		{{Perms: wire.PermAll, Scheme: "digest", ID: digest}, {Perms: wire.PermRead | wire.PermCreate, Scheme: "world", ID: "anyone"}},
		{{Perms: wire.PermAll, Scheme: "ip", ID: one(w, "127.0.0.1", "10.0.0.0/8", "127.0.0.0/8", "127.0.0.1/33", "nonsense", "", "127.0.0.1/", "127.0.0.0/0")}},
		{{Perms: wire.PermAll, Scheme: one(w, "nobody", "", "super", "World"), ID: "x"}},
		{open, open, {Perms: wire.PermRead, Scheme: "world", ID: "anyone"}},
		{{Perms: wire.PermAll, Scheme: "world", ID: one(w, "someone", "")}},
		{{Perms: wire.Perm(w.r.IntN(64)), Scheme: "world", ID: "anyone"}},
		{{Perms: wire.PermAdmin, Scheme: "world", ID: "anyone"}, {Perms: wire.PermDelete | wire.PermWrite, Scheme: "digest", ID: digest}},
	}
	if w.r.IntN(5) > 0 {
		return []wire.ACL{open}
	}
	return one(w, lists...)
}

// createPath returns the path of a create, often with a prefix of a sequential name.
func (w *writer) createPath(mode wire.CreateMode) string {
	if mode.Sequential() && w.r.IntN(3) > 0 {
		return below(one(w, "/a/s", "/b/s", "/", "/a/", "/s", "/c/"))
	}
	if w.maybe(100) {
		return below("/\U0001f600") // two invalid characters for Java
	}
	path := w.path()
	if path == below("") && !w.exclusive {
		return below("/b") // other scripts use the sequence numbers of the root
	}
	return path
}

// create returns one of the four creates. A createTTL has a TTL mode, because others end Java's
// server.
func (w *writer) create() wire.MultiOp {
	mode := wire.CreateMode(w.r.IntN(4))
	path := w.createPath(mode)
	req := &wire.CreateRequest{Path: path, Data: w.data(path), ACL: w.acl(), Flags: mode}
	switch n := w.r.IntN(12); {
	case n == 0:
		// No ephemeral modes: Java's server deletes such a container if the session ends before
		// the create is written.
		req.Flags = one(w, wire.ModeContainer, wire.ModeContainer, wire.ModePersistent, wire.ModePersistentSequential, 5, 6, 7)
		return wire.MultiOp{Op: wire.OpCreateContainer, Req: w.avoidCollection(req)}
	case n == 1:
		mode := wire.ModePersistentTTL + wire.CreateMode(w.r.IntN(2))
		ttl := one[int64](w, 1_000_000, 100_000, 1<<40-1, 0, -1, 1<<40)
		q := &wire.CreateTTLRequest{Path: path, Data: req.Data, ACL: req.ACL, Flags: mode, TTL: ttl}
		return wire.MultiOp{Op: wire.OpCreateTTL, Req: q}
	case n == 2:
		req.Flags = wire.CreateMode(w.r.IntN(10) - 1)
		return wire.MultiOp{Op: wire.OpCreate2, Req: w.avoidCollection(req)}
	case n < 6:
		return wire.MultiOp{Op: wire.OpCreate, Req: req}
	}
	return wire.MultiOp{Op: wire.OpCreate2, Req: req}
}

// avoidCollection makes the create of a container fail if the servers collect containers, which
// they would delete at any time.
func (w *writer) avoidCollection(q *wire.CreateRequest) *wire.CreateRequest {
	if !w.exclusive {
		q.Path = below("/missing/c")
	}
	return q
}

// change returns an operation that a multi may contain.
func (w *writer) change() wire.MultiOp {
	path := w.path()
	switch w.r.IntN(9) {
	case 0, 1:
		return wire.MultiOp{Op: wire.OpDelete, Req: &wire.DeleteRequest{Path: path, Version: w.version()}}
	case 2, 3:
		return wire.MultiOp{Op: wire.OpSetData, Req: &wire.SetDataRequest{Path: path, Data: w.data(path), Version: w.version()}}
	}
	return w.create()
}

// multi returns a multi of random length.
func (w *writer) multi() wire.MultiOp {
	m := &wire.MultiRequest{}
	for range w.r.IntN(6) {
		op := w.change()
		if w.maybe(4) {
			op = wire.MultiOp{Op: wire.OpCheck, Req: &wire.CheckVersionRequest{Path: w.path(), Version: w.version()}}
		}
		m.Ops = append(m.Ops, op)
	}
	return wire.MultiOp{Op: wire.OpMulti, Req: m}
}

// multiRead returns a multiRead of random length.
func (w *writer) multiRead() wire.MultiOp {
	m := &wire.MultiReadRequest{}
	for range w.r.IntN(5) {
		op := wire.MultiOp{Op: wire.OpGetData, Req: &wire.GetDataRequest{Path: w.path(), Watch: w.maybe(2)}}
		if w.maybe(2) {
			op = wire.MultiOp{Op: wire.OpGetChildren, Req: &wire.GetChildrenRequest{Path: w.path(), Watch: w.maybe(2)}}
		}
		m.Ops = append(m.Ops, op)
	}
	return wire.MultiOp{Op: wire.OpMultiRead, Req: m}
}
