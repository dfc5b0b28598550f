package zklock

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zklock/zklock/internal/queue"
	"github.com/zklock/zklock/zk"
)

// A LockState is the state of a lock at one moment; see [Client.Watch].
type LockState struct {
	// Holders are the entries that hold the lock, in order; none if the lock is free. A
	// mutex or a node lock has at most one. The Acquire of a holder may not have returned
	// yet. An acquire in the mixed layout has two entries, of which only the first is listed.
	// If the client may not read an entry, only the fields that its name tells are set.
	Holders []Entry
	// Waiting is the number of acquires that wait in the queue.
	Waiting int
}

// Watch yields the state of a lock: first the current state, then a new one after
// changes, until the caller stops or ctx ends. See [Client.Mutex] for names. Clients that
// follow a leader read its address in the Value of the holder.
//
// Watch continues after lost connections and expired sessions. Its states are in order:
//
//   - A state is never older than the previous one, even if the client connects to a server
//     that lags behind. So the tokens of exclusive holders never decrease.
//   - After the last change, Watch yields the current state as soon as the client has a
//     connection. Without a connection, Watch yields nothing, and the last state can be
//     out of date: the lock can have another holder. Compare tokens before you act on it.
//   - Watch merges changes that follow each other quickly. A holder or a waiter can come and
//     go between two states.
//   - If the client loses the permission to read the lock's znode, even for a moment, the
//     servers do not report the changes of that time, and the watch is gone. Watch then yields
//     nothing until the client connects again.
//
// Watch does not poll. With each read, it sets a one-shot watch of the servers: one on
// the list of children of the lock's znode, and one on the data of each holder. A change
// costs a listing, and a read of each holder that is new or has changed. While the caller
// handles a state, Watch reads nothing. Calls of Watch by one client on the same lock
// share these watches. After the iteration ends, the servers keep them until the next
// change. Do not use [zk.Client.AddWatch] on the same path in the same session.
//
// If Watch cannot continue, it yields an error as its last element: the error of ctx,
// ErrClosed, zk.ErrNoAuth if the client may not list the queue, or ErrInvalidLock for a
// semaphore. Use [Client.Inspect] for a semaphore.
func (c *Client) Watch(ctx context.Context, name string) iter.Seq2[LockState, error] {
	return func(yield func(LockState, error) bool) {
		l := c.queueLock(name, queue.Exclusive, false)
		fail := func(err error) {
			yield(LockState{}, &Error{Op: "watch", Path: l.path, Err: publicError(err)})
		}
		if l.err != nil {
			fail(l.err)
			return
		}
		w := newLockWatch(c, l.components[0])
		stop := c.zk.Listen(zk.Listener{State: w.onState, Event: w.onEvent})
		defer stop()
		var last LockState
		for first := true; ; {
			state, err := w.read(ctx)
			switch {
			case err != nil && !isTransient(err):
				fail(err)
				return
			case err == nil && (first || !state.equal(last)):
				first, last = false, LockState{slices.Clone(state.Holders), state.Waiting}
				if !yield(state, nil) {
					return
				}
			}
			if err := w.wait(ctx, err != nil); err != nil {
				fail(err)
				return
			}
		}
	}
}

// watchRetry is the pause after a read that failed.
const watchRetry = 100 * time.Millisecond

// isTransient reports whether a read that failed with err can succeed later.
func isTransient(err error) bool {
	return errors.Is(err, zk.ErrConnectionLost) || errors.Is(err, zk.ErrSessionExpired) ||
		errors.Is(err, zk.ErrSessionMoved) || errors.Is(err, zk.ErrThrottled)
}

// equal reports whether two states have the same content. The times of owners are not
// compared, because the same time can be decoded to different values.
func (s LockState) equal(o LockState) bool {
	return s.Waiting == o.Waiting && slices.EqualFunc(s.Holders, o.Holders, func(a, b Entry) bool {
		a.Owner.Since, b.Owner.Since = time.Time{}, time.Time{}
		return a == b
	})
}

// A lockWatch reads one lock again and again.
//
// Why its states are in order: a client sends each server the largest transaction id that
// any server has answered, also in its next session, and a server that has not applied that
// transaction refuses the connection. So each read sees at least what the read before saw.
//
// Why no state is missed: each listing and each read of a holder sets its watch at the same
// moment, and an event arrives before any answer that reflects the change. On a new
// connection, lockWatch reads everything again.
type lockWatch struct {
	client  *Client
	of      component
	changed chan struct{} // has a value if there is something to read

	entries []Entry // those that were read last; used only by read
	began   bool    // the present state was reported; used only by onState

	mu sync.Mutex // guards what follows
	// watched has the znodes whose data were read, with a watch, and have not changed since.
	watched map[string]bool
}

func newLockWatch(c *Client, of component) *lockWatch {
	return &lockWatch{client: c, of: of, changed: make(chan struct{}, 1), watched: map[string]bool{}}
}

// wake makes wait return.
func (w *lockWatch) wake() {
	select {
	case w.changed <- struct{}{}:
	default: // it will return anyway
	}
}

// wait waits until there is something to read, or for a moment if the last read failed.
func (w *lockWatch) wait(ctx context.Context, failed bool) error {
	var again <-chan time.Time
	if failed {
		again = time.After(watchRetry)
	}
	select {
	case <-w.changed:
	case <-again:
	case <-w.client.ending:
		return ErrClosed
	case <-ctx.Done():
		return contextError(ctx)
	}
	return nil
}

// onState is called with the present state first, before the first answer.
func (w *lockWatch) onState(s zk.StateChange) {
	if w.began && s.State != zk.Disconnected {
		w.forget()
		w.wake()
	}
	w.began = true
}

// forget makes the next read read the data of all holders.
func (w *lockWatch) forget() {
	w.mu.Lock()
	clear(w.watched)
	w.mu.Unlock()
}

func (w *lockWatch) onEvent(e zk.Event) {
	switch {
	case e.Path != w.of.member.Path:
		w.mu.Lock()
		watched := w.watched[e.Path]
		delete(w.watched, e.Path) // also of a deleted entry: another client can create its name again
		w.mu.Unlock()
		if !watched || e.Type == zk.EventNodeDeleted { // the event of the parent follows
			return
		}
	case e.Type == zk.EventNodeDeleted:
		w.forget() // the names can be used again
	}
	w.wake()
}

// known returns the entries that need not be read again.
func (w *lockWatch) known() entryCache {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.entries = slices.DeleteFunc(w.entries, func(e Entry) bool { return !w.watched[e.Node] })
	clear(w.watched)
	for _, e := range w.entries {
		w.watched[e.Node] = true
	}
	return newEntryCache(w.entries)
}

// read returns the present state of the lock, and sets the watches.
func (w *lockWatch) read(ctx context.Context) (LockState, error) {
	for {
		select {
		case <-w.changed: // this read sees the change
		default:
		}
		known := w.known()
		entries, err := w.list(ctx, known)
		if err != nil || len(entries) == 0 {
			return LockState{}, err
		}
		state, ok, err := w.readHolders(ctx, entries, known)
		if err != nil || ok {
			return state, err
		}
		if err := ctx.Err(); err != nil {
			return LockState{}, contextError(ctx)
		}
	}
}

// list returns the entries of the queue in order, or the one of a node lock.
func (w *lockWatch) list(ctx context.Context, known entryCache) ([]queue.Entry, error) {
	dir, names := w.of.member.Path, w.of.member.Names
	for {
		results, err := w.client.doAll(ctx, zk.ChildrenOp(dir, true))
		if err != nil {
			return nil, err
		}
		r := results[0]
		known.dropOlder(r.Stat)
		switch {
		case errors.Is(r.Err, zk.ErrNoNode):
			results, err := w.client.doAll(ctx, zk.ExistsOp(dir, true))
			if err != nil {
				return nil, err
			}
			if err := results[0].Err; err != nil {
				return nil, ignoreNoNode(err)
			}
			continue // it was created in between
		case r.Err != nil:
			return nil, r.Err
		case names.Only: // dir is the parent of several locks
		case r.Stat.EphemeralOwner != 0:
			delete(known, dir) // the next holder's znode has the same name
			return []queue.Entry{{Name: path.Base(dir)}}, nil
		case slices.Contains(r.Children, path.Base(queue.LeasesPath(""))):
			return nil, fmt.Errorf("%w: a semaphore cannot be watched; use Inspect", ErrInvalidLock)
		}
		return names.Sort(r.Children).Queue, nil
	}
}

// readHolders reads the holders of a queue that was just listed. A holder can be gone
// when it is read. New entries come only after those in the listing, so the next entry
// then holds, if it exists. To find one on a busy lock, each attempt reads more entries
// ahead. ok is false if a new listing is needed: no entry is left, or a writer is gone,
// which may have left a reader's entry with its sequence number.
func (w *lockWatch) readHolders(ctx context.Context, entries []queue.Entry, known entryCache) (state LockState, ok bool, err error) {
	found := map[string]Entry{} // by name
	unread := func(e queue.Entry) bool { _, ok := found[e.Name]; return !ok }
	for ahead := 1; len(entries) > 0; ahead *= 2 {
		n := queue.Holders(entries)
		if !slices.ContainsFunc(entries[:n], unread) {
			w.entries = slices.Collect(maps.Values(found))
			return w.state(entries, n, found), true, nil
		}
		n = min(max(n, ahead), len(entries))
		var reads []Entry
		for _, e := range entries[:n] {
			if unread(e) {
				reads = append(reads, w.entry(e))
			}
		}
		w.expect(reads, known)
		results, err := w.client.readEntries(ctx, reads, known, true)
		if err != nil {
			return LockState{}, false, err
		}
		for _, f := range results {
			found[f.Name] = f.Entry
		}
		if entries, ok = removeGone(entries, n, found); !ok {
			break
		}
	}
	return LockState{}, false, nil
}

// removeGone removes those of the first n entries that were not found. ok is false if one of
// them is a writer's.
func removeGone(entries []queue.Entry, n int, found map[string]Entry) (left []queue.Entry, ok bool) {
	left = make([]queue.Entry, 0, len(entries))
	for _, e := range entries[:n] {
		if _, here := found[e.Name]; here {
			left = append(left, e)
		} else if e.Writer() {
			return nil, false
		}
	}
	return append(left, entries[n:]...), true
}

// expect notes that the entries are known, or are about to be read with a watch. It removes
// those from known that have changed, or whose watch was lost, since known was returned.
func (w *lockWatch) expect(entries []Entry, known entryCache) {
	w.mu.Lock()
	defer w.mu.Unlock()
	unwatched := map[string]bool{}
	for _, e := range entries {
		if !w.watched[e.Node] {
			delete(known, e.Node)
			unwatched[e.Node], w.watched[e.Node] = true, true
		}
	}
	// If the read fails, the next one must not find the former entries known.
	w.entries = slices.DeleteFunc(w.entries, func(e Entry) bool { return unwatched[e.Node] })
}

// entry returns the entry with this name, as far as the name tells.
func (w *lockWatch) entry(q queue.Entry) Entry {
	e := Entry{Path: w.of.path, Node: path.Join(w.of.member.Path, q.Name), Name: q.Name, Mode: Exclusive, Holder: true}
	switch {
	case q.Marker == "" && q.Layout != queue.Custom: // a node lock
		e.Node = w.of.path
	case q.Kind == queue.Shared:
		e.Mode = Shared
	}
	return e
}

// state returns the state of a queue of which the first n entries hold.
func (w *lockWatch) state(entries []queue.Entry, n int, found map[string]Entry) (s LockState) {
	for i, e := range entries {
		switch {
		case i > 0 && areOneAcquire(entries[i-1], e):
		case i < n:
			s.Holders = append(s.Holders, found[e.Name])
		default:
			s.Waiting++
		}
	}
	return s
}

// areOneAcquire reports whether one acquire in the mixed layout created both entries.
func areOneAcquire(a, b queue.Entry) bool {
	plain := func(e queue.Entry) string { return strings.ReplaceAll(e.GUID, "-", "") }
	return a.Layout != b.Layout && a.GUID != "" && plain(a) == plain(b)
}
