package durable

import (
	"fmt"
	"slices"
	"sync"
)

// Node is what the books say of a node, and what is found of it.
type Node struct {
	Exists       bool
	Czxid, Mzxid int64
	Version      int32
	Data         string
	Owner        int64 // the session of an ephemeral one
}

// Change is what was asked for.
type Change int

// The changes. None means that everything asked for was answered.
const (
	None Change = iota
	Create
	Set
	Delete
)

// record is a node's page in the books: what was acknowledged last, and at most
// one request without an answer.
type record struct {
	known   Node
	pending Change
	data    string // what a pending create or set writes
	owner   int64  // of a pending create
}

// Ledger keeps the books on what a server acknowledged. Each path has one
// request under way at a time, and is not used again after a delete. Its methods
// may be called from any goroutine.
type Ledger struct {
	mu    sync.Mutex
	nodes map[string]*record
	top   int64 // the highest zxid that was acknowledged
	acked int
}

// NewLedger returns empty books.
func NewLedger() *Ledger { return &Ledger{nodes: map[string]*record{}} }

// Ask notes a request before it is sent.
func (l *Ledger) Ask(path string, change Change, data string, owner int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.nodes[path]
	if r == nil {
		r = &record{}
		l.nodes[path] = r
	}
	r.pending, r.data, r.owner = change, data, owner
}

// Acknowledge notes that the request under way was answered, and what the node
// is since.
func (l *Ledger) Acknowledge(path string, is Node) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.nodes[path]
	r.known, r.pending = is, None
	l.acked++
	l.top = max(l.top, is.Mzxid)
}

// Reached notes a zxid that a client was told.
func (l *Ledger) Reached(zxid int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.top = max(l.top, zxid)
}

// Top is the highest zxid that was acknowledged.
func (l *Ledger) Top() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.top
}

// Acknowledged is how many changes were acknowledged.
func (l *Ledger) Acknowledged() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.acked
}

// Known returns what was acknowledged of a path.
func (l *Ledger) Known(path string) Node {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r := l.nodes[path]; r != nil {
		return r.known
	}
	return Node{}
}

// Paths returns all paths in the books, sorted.
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

// Settle compares the books with what is found at a path while nothing is under
// way. What was without an answer is then known, one way or the other.
func (l *Ledger) Settle(path string, found Node) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.check(path, found); err != nil {
		return err
	}
	r := l.nodes[path]
	r.known, r.pending = found, None
	return nil
}

// Check compares as Settle does and changes nothing in the books: what was without
// an answer stays so. A read-only server does not know yet what its restart finds.
func (l *Ledger) Check(path string, found Node) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.check(path, found)
}

func (l *Ledger) check(path string, found Node) error {
	r := l.nodes[path]
	if r == nil {
		return fmt.Errorf("%s: nobody made it", path)
	}
	if found != r.known && !r.explains(found) {
		return fmt.Errorf("%s: acknowledged was %+v (then %v without an answer), found is %+v", path, r.known, r.pending, found)
	}
	return nil
}

// explains reports whether found is what the request without an answer made of
// the node.
func (r *record) explains(found Node) bool {
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

// String names the change.
func (c Change) String() string { return [...]string{"nothing", "create", "set", "delete"}[c] }
