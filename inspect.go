package zklock

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/zklock/zklock/internal/queue"
	"github.com/zklock/zklock/zk"
)

// A Mode says what an entry of a lock's queue is.
type Mode string

// The modes of entries.
const (
	Exclusive Mode = "exclusive" // holds alone: a mutex, a writer
	Shared    Mode = "shared"    // holds beside others of its mode: a reader
	Stray     Mode = "stray"     // not a contender: it has no place in the order
)

// An Entry is one child of a lock's znode: a holder, a waiter, or a stray.
type Entry struct {
	Name    string    // of the child, below the lock's path
	Mode    Mode      // what it is
	Holder  bool      // it is at the head of the queue
	Token   int64     // its czxid: the fencing token if it holds
	Session int64     // the id of the session that it belongs to; 0 if it is not ephemeral
	Since   time.Time // when it was made, by the servers' clock
	Owner   Owner     // who made it, if zklock did; else zero
	Data    string    // what another library stored in it, without control characters
}

// who names the entry's owner as well as can be.
func (e Entry) who() string {
	switch {
	case e.Owner.Host != "" || e.Owner.PID != 0:
		return e.Owner.String()
	case e.Data != "":
		return e.Data
	}
	return e.Name
}

// Inspect returns the lock's queue as the servers show it: first the holder, then
// the waiters in turn, then strays. Entries of Curator, kazoo and go-zookeeper are
// understood. A lock that nobody has taken has no entries. What it says may be
// out of date when it returns.
func (l *Lock) Inspect(ctx context.Context) ([]Entry, error) {
	fail := func(err error) error { return &Error{Op: "inspect", Path: l.path, Err: public(err)} }
	if l.err != nil {
		return nil, fail(l.err)
	}
	results, err := l.client.ask(ctx, zk.ChildrenOp(l.path, false))
	if err == nil {
		err = results[0].Err
	}
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, fail(err)
	}
	entries := arrange(results[0].Children)
	reads := make([]zk.Op, len(entries))
	for i, e := range entries {
		reads[i] = zk.GetOp(l.path+"/"+e.Name, false)
	}
	results, err = l.client.ask(ctx, reads...)
	if err != nil {
		return nil, fail(err)
	}
	left := entries[:0]
	for i, res := range results {
		switch {
		case res.Err == nil:
			left = append(left, entries[i].with(res))
		case !errors.Is(res.Err, zk.ErrNoNode): // one that left meanwhile is not shown
			return nil, fail(res.Err)
		}
	}
	return left, nil
}

// arrange puts children in the order of Inspect.
func arrange(children []string) []Entry {
	l := queue.Sort(children)
	entries := make([]Entry, 0, len(children))
	holders := queue.Holders(l.Queue)
	for i, e := range l.Queue {
		mode := Exclusive
		if e.Kind == queue.Shared {
			mode = Shared
		}
		entries = append(entries, Entry{Name: e.Name, Mode: mode, Holder: i < holders})
	}
	for _, name := range append(l.Malformed, l.Foreign...) {
		entries = append(entries, Entry{Name: name, Mode: Stray})
	}
	return entries
}

// with adds what was read of the entry's znode.
func (e Entry) with(r zk.Result) Entry {
	e.Token, e.Session = r.Stat.Czxid, r.Stat.EphemeralOwner
	e.Since = time.UnixMilli(r.Stat.Ctime)
	e.Owner, e.Data = parseOwner(r.Data)
	return e
}

// ask sends operations in one go and returns their results, or ctx's error.
func (c *Client) ask(ctx context.Context, ops ...zk.Op) ([]zk.Result, error) {
	var mu sync.Mutex // guards left
	left := len(ops)
	results := make([]zk.Result, len(ops))
	all := make(chan struct{})
	if left == 0 {
		return results, nil
	}
	for i, op := range ops {
		c.zk.Go(op, func(r zk.Result) {
			mu.Lock()
			results[i] = r
			left--
			last := left == 0
			mu.Unlock()
			if last {
				close(all)
			}
		})
	}
	select {
	case <-all:
		return results, nil
	case <-ctx.Done():
		return nil, contextError(ctx)
	}
}
