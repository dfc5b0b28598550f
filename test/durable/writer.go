package durable

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"

	"github.com/zklock/zklock/zk"
)

// Writer changes nodes of its own, one after the other, and keeps the books. It
// is used by one goroutine at a time.
type Writer struct {
	client *zk.Client
	books  *Ledger
	rng    *rand.Rand
	prefix string
	made   int
	paths  []string // nodes that may exist
}

// NewWriter returns a writer whose nodes' paths begin with the prefix.
func NewWriter(client *zk.Client, books *Ledger, prefix string, seed uint64) *Writer {
	return &Writer{client: client, books: books, prefix: prefix, rng: rand.New(rand.NewPCG(seed, 1))}
}

// Run makes changes until over is set, or an answer is lost, which is not an
// error. Other failures of the server's are.
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
	w.paths = slices.DeleteFunc(w.paths, func(p string) bool { return !w.books.Known(p).Exists })
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
	w.books.Ask(path, Create, data, owner)
	w.paths = append(w.paths, path)
	_, stat, err := w.client.Create(ctx, path, []byte(data), nil, mode)
	if err == nil {
		w.books.Acknowledge(path, node(data, stat))
	}
	return err
}

func (w *Writer) set(ctx context.Context, path string) error {
	data := w.data()
	w.books.Ask(path, Set, data, 0)
	stat, err := w.client.Set(ctx, path, []byte(data), -1)
	if err == nil {
		w.books.Acknowledge(path, node(data, stat))
	}
	return err
}

func (w *Writer) remove(ctx context.Context, path string) error {
	w.books.Ask(path, Delete, "", 0)
	err := w.client.Delete(ctx, path, -1)
	if err == nil {
		w.books.Acknowledge(path, Node{})
	}
	return err
}

// data is different each time, and of any length up to a page.
func (w *Writer) data() string {
	return fmt.Sprintf("%x%0*d", w.rng.Uint64(), w.rng.IntN(4096), w.made)
}

func node(data string, s zk.Stat) Node {
	return Node{Exists: true, Czxid: s.Czxid, Mzxid: s.Mzxid, Version: s.Version, Data: data, Owner: s.EphemeralOwner}
}

// Audit compares everything in the books with what a server has, while nobody
// writes, and settles what was without an answer. It returns what is wrong.
func Audit(ctx context.Context, client *zk.Client, books *Ledger) (wrong []error) {
	return audit(ctx, client, books, books.Settle)
}

// AuditReadOnly is Audit for a read-only server, which settles nothing.
func AuditReadOnly(ctx context.Context, client *zk.Client, books *Ledger) (wrong []error) {
	return audit(ctx, client, books, books.Check)
}

func audit(ctx context.Context, client *zk.Client, books *Ledger, compare func(string, Node) error) (wrong []error) {
	type answer struct {
		path string
		zk.Result
	}
	paths := books.Paths()
	top := books.Top()
	answers := make(chan answer, len(paths)) // room for all: the client's goroutine must not block
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
		found := Node{}
		switch zk.Applied(a.Err) {
		case zk.AppliedYes:
			found = node(string(a.Data), a.Stat)
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
