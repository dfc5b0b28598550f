package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/zklock/zklock/zk"
)

// Znode is the state of a znode.
type Znode struct {
	Exists       bool
	Czxid, Mzxid int64
	Version      int32
	Data         string
	Owner        int64 // the session of an ephemeral znode
}

// Change is a requested change.
type Change int

// The changes. None means that every request was answered.
const (
	None Change = iota
	Create
	Set
	Delete
)

// record is the ledger's record of a znode: its last acknowledged state, and at most
// one request without an answer.
type record struct {
	known   Znode
	pending Change
	data    string // what a pending create or set writes
	owner   int64  // of a pending create
}

// Ledger records acknowledged changes. Each path has at most one request in flight, and is
// not used again after a delete. The methods may be called from any goroutine.
type Ledger struct {
	mu    sync.Mutex
	nodes map[string]*record
	top   int64 // the highest acknowledged zxid
	acked int
}

// NewLedger returns an empty ledger.
func NewLedger() *Ledger { return &Ledger{nodes: map[string]*record{}} }

// Request records a request before it is sent.
func (l *Ledger) Request(path string, change Change, data string, owner int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.nodes[path]
	if r == nil {
		r = &record{}
		l.nodes[path] = r
	}
	r.pending, r.data, r.owner = change, data, owner
}

// Acknowledge records that the request in flight was answered, and the new state of
// the znode.
func (l *Ledger) Acknowledge(path string, is Znode) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.nodes[path]
	r.known, r.pending = is, None
	l.acked++
	l.top = max(l.top, is.Mzxid)
}

// Received records a zxid that a client has received.
func (l *Ledger) Received(zxid int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.top = max(l.top, zxid)
}

// Top returns the highest acknowledged zxid.
func (l *Ledger) Top() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.top
}

// Acknowledged returns the number of acknowledged changes.
func (l *Ledger) Acknowledged() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.acked
}

// Known returns the last acknowledged state of a path.
func (l *Ledger) Known(path string) Znode {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r := l.nodes[path]; r != nil {
		return r.known
	}
	return Znode{}
}

// Paths returns all paths in the ledger, sorted.
func (l *Ledger) Paths() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	paths := make([]string, 0, len(l.nodes))
	for path := range l.nodes {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return paths
}

// Settle compares the ledger with the znode at a path while no request is in flight, and
// stores the outcome of a request without an answer.
func (l *Ledger) Settle(path string, found Znode) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.check(path, found); err != nil {
		return err
	}
	r := l.nodes[path]
	r.known, r.pending = found, None
	return nil
}

// Check compares like Settle, but does not change the ledger. A read-only server may have
// another state after its restart.
func (l *Ledger) Check(path string, found Znode) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.check(path, found)
}

func (l *Ledger) check(path string, found Znode) error {
	r := l.nodes[path]
	if r == nil {
		return fmt.Errorf("%s: not in the ledger", path)
	}
	if found != r.known && !r.explains(found) {
		return fmt.Errorf("%s: acknowledged was %+v (then %v without an answer), found is %+v", path, r.known, r.pending, found)
	}
	return nil
}

// explains reports whether the request without an answer leads to the state found.
func (r *record) explains(found Znode) bool {
	switch r.pending {
	case Create:
		return found.Exists && found.Data == r.data && found.Owner == r.owner && found.Version == 0 &&
			found.Czxid > 0 && found.Mzxid == found.Czxid
	case Set:
		want := r.known
		want.Mzxid, want.Version, want.Data = found.Mzxid, want.Version+1, r.data
		return found == want && found.Mzxid > r.known.Mzxid
	case Delete:
		return !found.Exists
	}
	return false
}

// String returns the name of the change.
func (c Change) String() string { return [...]string{"nothing", "create", "set", "delete"}[c] }

// Writer changes its own znodes, one after the other, and records the changes in the ledger.
// One goroutine at a time may use it.
type Writer struct {
	client *zk.Client
	ledger *Ledger
	rng    *rand.Rand
	prefix string
	made   int
	paths  []string // nodes that may exist
}

// NewWriter returns a writer whose znodes' paths begin with the prefix.
func NewWriter(client *zk.Client, ledger *Ledger, prefix string, seed uint64) *Writer {
	return &Writer{client: client, ledger: ledger, prefix: prefix, rng: rand.New(rand.NewPCG(seed, 1))}
}

// Run makes changes until over is set or an answer is lost, which is not an error. It returns
// other failures of the server.
func (w *Writer) Run(ctx context.Context, over *atomic.Bool) error {
	for !over.Load() {
		err := w.change(ctx)
		switch {
		case err == nil:
		case zk.Applied(err) == zk.AppliedUnknown && ctx.Err() == nil:
			return nil
		default:
			return err
		}
	}
	return nil
}

// change makes one change.
func (w *Writer) change(ctx context.Context) error {
	w.paths = slices.DeleteFunc(w.paths, func(p string) bool { return !w.ledger.Known(p).Exists })
	if dice := w.rng.IntN(10); len(w.paths) > 0 && dice < 6 {
		path := w.paths[w.rng.IntN(len(w.paths))]
		if dice < 4 {
			return w.set(ctx, path)
		}
		return w.remove(ctx, path)
	}
	return w.create(ctx)
}

func (w *Writer) create(ctx context.Context) error {
	w.made++
	path, mode, owner := fmt.Sprintf("%s-%d", w.prefix, w.made), zk.ModePersistent, int64(0)
	if w.rng.IntN(3) == 0 {
		mode, owner = zk.ModeEphemeral, w.client.SessionID()
	}
	data := w.data()
	w.ledger.Request(path, Create, data, owner)
	w.paths = append(w.paths, path)
	_, stat, err := w.client.Create(ctx, path, []byte(data), nil, mode)
	if err == nil {
		w.ledger.Acknowledge(path, znodeOf(data, stat))
	}
	return err
}

func (w *Writer) set(ctx context.Context, path string) error {
	data := w.data()
	w.ledger.Request(path, Set, data, 0)
	stat, err := w.client.Set(ctx, path, []byte(data), -1)
	if err == nil {
		w.ledger.Acknowledge(path, znodeOf(data, stat))
	}
	return err
}

func (w *Writer) remove(ctx context.Context, path string) error {
	w.ledger.Request(path, Delete, "", 0)
	err := w.client.Delete(ctx, path, -1)
	if err == nil {
		w.ledger.Acknowledge(path, Znode{})
	}
	return err
}

// data returns different data each time, up to 4 KiB.
func (w *Writer) data() string {
	return fmt.Sprintf("%x%0*d", w.rng.Uint64(), w.rng.IntN(4096), w.made)
}

func znodeOf(data string, s zk.Stat) Znode {
	return Znode{Exists: true, Czxid: s.Czxid, Mzxid: s.Mzxid, Version: s.Version, Data: data, Owner: s.EphemeralOwner}
}

// Audit compares the ledger with a server's znodes while no client writes, and settles
// requests without an answer. It returns the differences.
func Audit(ctx context.Context, client *zk.Client, ledger *Ledger) (wrong []error) {
	return audit(ctx, client, ledger, ledger.Settle)
}

// AuditReadOnly is Audit for a read-only server, and settles no requests.
func AuditReadOnly(ctx context.Context, client *zk.Client, ledger *Ledger) (wrong []error) {
	return audit(ctx, client, ledger, ledger.Check)
}

func audit(ctx context.Context, client *zk.Client, ledger *Ledger, compare func(string, Znode) error) (wrong []error) {
	type answer struct {
		path string
		zk.Result
	}
	paths := ledger.Paths()
	top := ledger.Top()
	answers := make(chan answer, len(paths)) // the client's goroutine must not block
	for _, path := range paths {
		client.Go(zk.GetOp(path, false), func(r zk.Result) { answers <- answer{path, r} })
	}
	for range paths {
		var a answer
		select {
		case a = <-answers:
		case <-ctx.Done():
			return append(wrong, ctx.Err())
		}
		found := Znode{}
		switch zk.Applied(a.Err) {
		case zk.AppliedYes:
			found = znodeOf(string(a.Data), a.Stat)
		case zk.AppliedUnknown:
			return append(wrong, a.Err)
		}
		if a.Zxid < top {
			wrong = append(wrong, fmt.Errorf("%s: the server is at zxid %#x, after %#x was acknowledged", a.path, a.Zxid, top))
		}
		if err := compare(a.path, found); err != nil {
			wrong = append(wrong, err)
		}
	}
	return wrong
}

// TestLedgerDetectsLoss checks that the ledger distinguishes each kind of loss from the effect
// of a request whose answer was lost.
func TestLedgerDetectsLoss(t *testing.T) {
	acked := Znode{Exists: true, Czxid: 5, Mzxid: 7, Version: 1, Data: "a", Owner: 9}
	with := func(change func(*Znode)) Znode {
		n := acked
		change(&n)
		return n
	}
	set := with(func(n *Znode) { n.Mzxid, n.Version, n.Data = 8, 2, "b" })
	made := Znode{Exists: true, Czxid: 5, Mzxid: 5, Data: "b", Owner: 9}
	for _, test := range []struct {
		name    string
		known   Znode
		pending Change
		found   Znode
		ok      bool
	}{
		{"as it was", acked, None, acked, true},
		{"lost", acked, None, Znode{}, false},
		{"created again", acked, None, with(func(n *Znode) { n.Czxid = 6 }), false},
		{"data lost", acked, None, with(func(n *Znode) { n.Data = "" }), false},
		{"an older version", acked, None, with(func(n *Znode) { n.Version, n.Mzxid = 0, 5 }), false},
		{"owner lost", acked, None, with(func(n *Znode) { n.Owner = 0 }), false},
		{"set without a request", acked, None, set, false},
		{"deleted, and back", Znode{}, None, acked, false},
		{"the set came through", acked, Set, set, true},
		{"the set did not", acked, Set, acked, true},
		{"another set", acked, Set, with(func(n *Znode) { n.Mzxid, n.Version, n.Data = 8, 2, "c" }), false},
		{"the set, its zxid going back", acked, Set, with(func(n *Znode) { n.Mzxid, n.Version, n.Data = 6, 2, "b" }), false},
		{"gone instead of set", acked, Set, Znode{}, false},
		{"the delete came through", acked, Delete, Znode{}, true},
		{"the delete did not", acked, Delete, acked, true},
		{"set instead of deleted", acked, Delete, set, false},
		{"the create came through", Znode{}, Create, made, true},
		{"the create did not", Znode{}, Create, Znode{}, true},
		{"half a create", Znode{}, Create, Znode{Exists: true, Czxid: 5, Mzxid: 5, Data: "", Owner: 9}, false},
	} {
		l := NewLedger()
		l.Request("/n", Create, "a", 9)
		l.Acknowledge("/n", test.known)
		l.Request("/n", test.pending, "b", 9)
		if err := l.Settle("/n", test.found); (err == nil) != test.ok {
			t.Errorf("%s: %v, want ok %v", test.name, err, test.ok)
		}
		if test.ok && l.Settle("/n", test.found) != nil {
			t.Errorf("%s: not settled", test.name)
		}
	}
	if err := NewLedger().Settle("/stray", Znode{}); err == nil || !strings.Contains(err.Error(), "/stray") {
		t.Errorf("a path that is not in the ledger: %v", err)
	}
}

func TestLedgerCounts(t *testing.T) {
	l := NewLedger()
	l.Request("/b", Create, "", 0)
	l.Request("/a", Create, "", 0)
	l.Acknowledge("/a", Znode{Exists: true, Czxid: 3, Mzxid: 3})
	l.Received(2)
	if l.Top() != 3 || l.Acknowledged() != 1 || l.Known("/a").Czxid != 3 || l.Known("/none").Exists {
		t.Errorf("top %d, %d acknowledged, %+v", l.Top(), l.Acknowledged(), l.Known("/a"))
	}
	if paths := l.Paths(); len(paths) != 2 || paths[0] != "/a" {
		t.Errorf("paths %q", paths)
	}
	l.Received(8)
	if l.Top() != 8 {
		t.Errorf("top %d, want 8", l.Top())
	}
}
