package zk

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/zklock/zklock/internal/wire"
)

// persistentWatch is one use of a persistent watch by AddWatchFunc.
type persistentWatch struct {
	path  string // on the server
	own   string // as the user gave it
	mode  AddWatchMode
	f     func(Event)
	epoch uint64 // the session in which it is counted; guarded by the client's mutex
	ended atomic.Bool
}

// watchUsers counts the uses of one watch on the server, from before the request that
// sets it is queued. So a request that removes it is never queued after the request of a
// new user. A user that has not queued its request yet sets the watch again.
type watchUsers struct {
	mode  AddWatchMode
	count int
	set   bool // the server has set it
}

// AddWatchFunc adds a watch as [Client.AddWatch] does, and calls f only with the events
// of this watch, even if other watches are set. f follows the rules of a [Listener]'s
// functions. If [Client.RemoveWatches] removes the watch, or the session ends, f is
// called for the last time, with [EventPersistentWatchRemoved].
//
// stop does not wait for f, and f may call it. The call of f that has begun, or is about to
// begin, when stop is called may run after stop has returned. No later call begins, and none
// after f has called stop. The last stop for a path removes the watch from the server, as
// RemoveWatches with [WatchKindAny] does. Several functions can watch one path if all have
// the same mode. For another mode, AddWatchFunc fails with [ErrInvalidOp].
func (c *Client) AddWatchFunc(ctx context.Context, path string, mode AddWatchMode, f func(Event)) (stop func(), err error) {
	w := &persistentWatch{path: c.root.add(path), own: path, mode: mode, f: f}
	op := AddWatchOp(path, mode)
	session, err := c.useWatch(w)
	if err != nil {
		return nil, &Error{Op: opName(op.op.Code), Path: path, Err: err, applied: AppliedNo}
	}
	_, err = c.doIn(ctx, session, &op, func(k *call) { k.registerPersistent(w) }, nil)
	if err != nil {
		c.stopWatch(w, Applied(err) != AppliedNo)
		return nil, err
	}
	return func() { c.stopWatch(w, false) }, nil
}

// useWatch counts a user of a watch in the present session. It returns the ID of that
// session, or 0 if the next session counts.
func (c *Client) useWatch(w *persistentWatch) (session int64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	users := c.watchUsers[w.path]
	if users.count > 0 && users.mode != w.mode {
		return 0, fmt.Errorf("%w: the path has a watch with another mode; stop it first", ErrInvalidOp)
	}
	if c.watchUsers == nil {
		c.watchUsers = make(map[string]watchUsers)
	}
	w.epoch = c.epoch
	users.mode = w.mode
	users.count++
	c.watchUsers[w.path] = users
	if c.lastState.State == Expired {
		return 0, nil
	}
	return c.lastState.SessionID, nil
}

// registerPersistent runs in wire order, after the answer and before any later event.
func (k *call) registerPersistent(w *persistentWatch) {
	if k.Result.Fault != nil || k.Result.Code != wire.ErrOK {
		return
	}
	c := k.client
	c.mu.Lock()
	if users := c.watchUsers[w.path]; users.count > 0 && w.epoch == c.epoch {
		users.set = true
		c.watchUsers[w.path] = users
	}
	c.mu.Unlock()
	c.watchers.addPersistent(w)
}

// stopWatch ends one use of a watch. The last one of the session removes the watch from
// the server if it was set, or if sent says that it may have been.
func (c *Client) stopWatch(w *persistentWatch, sent bool) {
	if w.ended.Swap(true) {
		return
	}
	c.mark(func() { c.watchers.forgetEnded(w.path) })
	c.mu.Lock()
	counted := w.epoch == c.epoch
	if counted {
		users := c.watchUsers[w.path]
		users.count--
		users.set = users.set || sent
		c.watchUsers[w.path] = users
	}
	c.mu.Unlock()
	if counted {
		c.removeUnused(w)
	}
}

// removeUnused queues the request that removes a watch without users, again after each
// lost connection: the watch is set again on the next one.
func (c *Client) removeUnused(w *persistentWatch) {
	op := RemoveWatchesOp(w.own, WatchKindAny)
	k := c.newCall()
	if err := k.prepare(&op); err != nil {
		k.release() // not reached: AddWatchFunc has checked the path
		return
	}
	k.done = func(r Result) {
		if errors.Is(r.Err, ErrConnectionLost) {
			c.removeUnused(w)
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if w.epoch == c.epoch && c.watchUsers[w.path].count == 0 {
			delete(c.watchUsers, w.path)
		}
	}
	c.mu.Lock()
	users := c.watchUsers[w.path]
	if w.epoch == c.epoch && users.count == 0 && users.set {
		c.submitLocked(k, c.epoch)
		return
	}
	if w.epoch == c.epoch && users.count == 0 {
		delete(c.watchUsers, w.path)
	}
	c.mu.Unlock()
	k.release()
}

// addPersistent adds a function to call.
func (w *watchers) addPersistent(p *persistentWatch) {
	if w.persistent == nil {
		w.persistent = make(map[string][]*persistentWatch)
	}
	w.persistent[p.path] = append(w.persistent[p.path], p)
	w.longest = max(w.longest, len(p.path))
}

// forgetEnded removes the functions at a path that were stopped.
func (w *watchers) forgetEnded(path string) {
	var left []*persistentWatch
	for _, p := range w.persistent[path] {
		if !p.ended.Load() {
			left = append(left, p)
		}
	}
	if len(left) == 0 {
		delete(w.persistent, path)
		return
	}
	w.persistent[path] = left
}

// firePersistent calls the functions whose watch covers an event.
func (w *watchers) firePersistent(path string, e Event) {
	if len(w.persistent) == 0 {
		return
	}
	for _, p := range w.persistent[path] {
		if p.mode == WatchPersistent || e.Type != EventNodeChildrenChanged {
			p.call(e)
		}
	}
	// A server can send any path, also one of a million names. No longer beginning of it is
	// watched than the longest path.
	for at := path[:min(len(path), w.longest+1)]; strings.HasPrefix(at, "/") && at != "/" && e.Type != EventNodeChildrenChanged; {
		at = at[:max(strings.LastIndexByte(at, '/'), 1)]
		for _, p := range w.persistent[at] {
			if p.mode == WatchRecursive {
				p.call(e)
			}
		}
	}
}

// call calls the function unless it was stopped. It ignores events that only end one-shot
// watches.
func (p *persistentWatch) call(e Event) {
	if e.Type <= EventNodeChildrenChanged && !p.ended.Load() {
		p.f(e)
	}
}

// endPersistent calls the functions at a path for the last time. Only the delivering
// goroutine calls it.
func (c *Client) endPersistent(path string, e Event) {
	ended := c.watchers.persistent[path]
	delete(c.watchers.persistent, path)
	for _, p := range ended {
		if p.ended.Swap(true) {
			continue
		}
		c.mu.Lock()
		if users := c.watchUsers[path]; p.epoch == c.epoch && users.count > 0 {
			if users.count--; users.count > 0 {
				c.watchUsers[path] = users
			} else {
				delete(c.watchUsers, path)
			}
		}
		c.mu.Unlock()
		e.Path = p.own
		p.f(e)
	}
}
