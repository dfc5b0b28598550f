package sim

import (
	"errors"
	"slices"

	"github.com/zklock/zklock/internal/queue"
	"github.com/zklock/zklock/internal/session"
	"github.com/zklock/zklock/internal/wire"
)

// input gives the lock core an input and does what it requests.
func (c *client) input(in func(core *queue.Core)) {
	if !c.alive {
		return
	}
	in(c.core)
	requests, signals := c.core.Take(nil, nil)
	for _, s := range signals {
		c.signal(s)
	}
	for _, r := range requests {
		c.submit(r)
	}
	c.checkDeadline()
}

// tick runs when the timer fires and when a caller checks a hold. It must not report that
// all notices were delivered: it may run between the notices of one read.
func (c *client) tick() {
	c.input(func(core *queue.Core) { core.Tick(c.now) })
}

// submit sends a request of the lock core. It belongs to the session that the lock core
// knows, even if there is already a new one.
func (c *client) submit(r queue.Request) {
	c.noteRecords(r)
	c.trace("asks %+v", r)
	if r.Kind == queue.Swap {
		c.noteSwap(r)
	}
	c.send(r, func(q queue.Reply) { c.replied(r, q) })
}

func (c *client) send(r queue.Request, done func(q queue.Reply)) {
	call := &session.Call{Op: c.operation(r)}
	call.Op.Batchable = r.Batchable
	call.Done = func() { done(reply(r, &call.Result)) }
	c.sess.Submit(call, c.epoch)
}

// replied gives the lock core an answer.
func (c *client) replied(r queue.Request, q queue.Reply) {
	c.trace("gets %d: code %d made %v czxid %#x owner %#x data %q children %v failed %d", q.ID, q.Code, q.Made, q.Czxid, q.Owner, q.Data, q.Children, q.Failed)
	switch q.Code {
	case queue.Undone:
		c.world.Stats.Undone++
	case queue.OK:
		switch r.Kind {
		case queue.Get:
			if r.Watch && slices.ContainsFunc(c.world.locks, func(l *lock) bool { return l.Path == r.Path && l.Family == queues }) {
				c.world.Stats.Alone++
			}
		case queue.Renew:
			c.world.Stats.Renewed++
		case queue.MarkedDelete:
			c.world.Stats.Marked++
		}
	}
	c.input(func(core *queue.Core) { core.Reply(c.now, q) })
}

// deliver delivers the session's notices in order.
func (c *client) deliver() {
	for c.alive && !c.paused && c.sess.HasNotices() {
		c.deliverAll(c.sess.TakeNotices(nil))
	}
}

// deliverAll delivers notices. In between, the timer of the lock core may fire, or the process
// may be stopped right after it read the clock.
func (c *client) deliverAll(batch []session.Notice) {
	w := c.world
	for i := range batch {
		if !c.alive {
			return
		}
		if c.machine.stopAmid() {
			rest := batch[i:]
			c.backlog = append([]work{{kind: deliveryWork, stale: c.now, do: func() { c.deliverAll(rest) }}}, c.backlog...)
			return
		}
		c.deliverOne(&batch[i])
		c.now, c.stale = c.clock.read(w.now), false
		if w.oneIn(50) || w.cfg.Ticking {
			c.tick()
		}
	}
}

// deliverOne gives the lock core a notice of the session.
func (c *client) deliverOne(n *session.Notice) {
	switch n.Kind {
	case session.NoticeReply:
		n.Call.Done()
	case session.NoticeEvent:
		c.event(&n.Event)
	case session.NoticeState:
		c.epoch = n.State.Epoch
		c.state(&n.State)
	case session.NoticeMark:
		c.input(func(core *queue.Core) { core.Drained(c.now) })
		return
	}
}

// event gives the lock core a watch event.
func (c *client) event(e *session.Event) {
	kind := queue.Deleted
	switch e.Type {
	case wire.EventNodeDeleted:
	case wire.EventNodeChildrenChanged:
		kind = queue.Children
	case wire.EventNodeDataChanged:
		kind = queue.Changed
	case wire.EventNodeCreated:
		kind = queue.Created
		c.world.Stats.MarkEvents++
	default:
		return
	}
	c.trace("event %d %s", kind, e.Path)
	c.input(func(core *queue.Core) { core.Event(c.now, kind, e.Path, 0) })
}

// state gives the lock core a state of the session. The process ends when the session is
// closed.
func (c *client) state(s *session.StateChange) {
	change := queue.SessionChange{Session: s.SessionID, Timeout: s.Timeout, Sent: s.Sent, GivenUp: s.GivenUp, Conn: s.Conn}
	c.note("session %#x state %d conn %d err %v", s.SessionID, s.State, s.Conn, s.Err)
	switch s.State {
	case session.Connected:
		change.State = queue.Connected
		c.session = s.SessionID
		c.world.Stats.Reconnects++
		if c.machine.isolate == 2 && len(c.holds) > 0 {
			c.machine.isolate = 1
			c.world.cutOffHolder(c.machine)
		}
	case session.Disconnected:
		change.State = queue.Disconnected
		c.world.disturb()
	case session.Expired:
		change.State = queue.Expired
		c.world.Stats.Expired++
	case session.Closed:
		change.State, change.Err = queue.Closed, queue.ErrClosed
		change.Left = s.Err // why the end of the session was not confirmed
	}
	c.input(func(core *queue.Core) {
		core.Session(c.now, change)
		if change.State == queue.Connected && s.Conn%2 == 0 {
			core.HalfTick(c.now, s.Conn, serverTick/2) // on other connections, the tick is unknown
		}
	})
	if s.State == session.Closed {
		c.die()
	}
}

// shut closes the client like zklock's Close: holds end, then the client sends the deletes
// and the request to close the session.
func (c *client) shut() {
	c.closing = true
	c.input(func(core *queue.Core) { core.Shut(c.now) })
	c.sess.Close(c.now)
}

// operation returns a lock core's request as an operation of the session.
func (c *client) operation(r queue.Request) session.Op {
	switch r.Kind {
	case queue.Create:
		if len(r.Creates) == 1 {
			op := creation(r.Creates[0])
			op.Code = wire.OpCreate2
			return op
		}
		return multi(r)
	case queue.Guard:
		op := multi(r)
		op.Sub = append(op.Sub, c.operations(r.Call)...)
		return op
	case queue.Swap, queue.Renew, queue.Check, queue.MarkedDelete:
		return multi(r)
	case queue.SetWatches:
		w := &wire.SetWatches{RelativeZxid: r.Zxid, DataWatches: r.Paths, ExistWatches: []string{}, ChildWatches: []string{}}
		if r.Path != "" {
			w.ExistWatches = []string{r.Path}
		}
		return session.Op{Code: wire.OpSetWatches, Watches: w}
	case queue.Unwatch:
		return session.Op{Code: wire.OpRemoveWatches, Path: r.Path, Type: wire.WatcherData}
	case queue.List:
		return session.Op{Code: wire.OpGetChildren2, Path: r.Path, Watch: r.Watch}
	case queue.Get:
		return session.Op{Code: wire.OpGetData, Path: r.Path, Watch: r.Watch}
	case queue.Set:
		return session.Op{Code: wire.OpSetData, Path: r.Path, Data: r.Data, Version: r.Version}
	case queue.Delete:
		return session.Op{Code: wire.OpDelete, Path: r.Path, Version: -1}
	case queue.ReadAccess:
		return session.Op{Code: wire.OpGetACL, Path: r.Path}
	case queue.Ping:
		return session.Op{Code: wire.OpExists, Path: r.Path}
	case queue.Sync:
		return session.Op{Code: wire.OpSync, Path: r.Path}
	case queue.Make:
		if r.Container {
			return session.Op{Code: wire.OpCreateContainer, Path: r.Path, Data: []byte{}, Mode: wire.ModeContainer}
		}
		return session.Op{Code: wire.OpCreate2, Path: r.Path, Data: []byte{}, Mode: wire.ModePersistent}
	}
	return session.Op{}
}

// creation returns a create in a multi.
func creation(c queue.Creation) session.Op {
	mode := wire.ModeEphemeral
	switch {
	case c.Persistent:
		mode = wire.ModePersistent
	case c.Sequential:
		mode = wire.ModeEphemeralSequential
	}
	return session.Op{Code: wire.OpCreate, Path: c.Path, Data: c.Data, Mode: mode}
}

// multi returns a multi with the request's creates, and deletes or checks of its paths.
func multi(r queue.Request) session.Op {
	op := session.Op{Code: wire.OpMulti}
	for _, made := range r.Creates {
		op.Sub = append(op.Sub, creation(made))
	}
	code := wire.OpCheck
	if r.Kind != queue.Check && r.Kind != queue.Guard {
		code = wire.OpDelete
	}
	for i, p := range r.Paths {
		version := int32(-1)
		if r.Kind == queue.Swap {
			version = r.Versions[i]
		}
		op.Sub = append(op.Sub, session.Op{Code: code, Path: p, Version: version})
	}
	return op
}

// reply returns the session's result as a reply for the lock core.
func reply(r queue.Request, res *session.Result) queue.Reply {
	q := queue.Reply{
		ID: r.ID, Code: code(res), Err: res.Err(), Failed: -1,
		Zxid: res.Zxid, Czxid: res.Stat.Czxid, Owner: res.Stat.EphemeralOwner, Version: res.Stat.Version, Ctime: res.Stat.Ctime, Mtime: res.Stat.Mtime, Mzxid: res.Stat.Mzxid,
		Data: res.Data, Children: res.Strings,
		Sent: res.Sent, Received: res.Received, Conn: res.Conn,
	}
	if len(res.Sub) > 0 && q.Code != queue.OK {
		q.Failed = res.Failed
	}
	if q.Code == queue.OK {
		q.Made = made(r, res)
		if len(r.Creates) > 1 || r.Kind == queue.Swap || r.Kind == queue.Renew || r.Kind == queue.MarkedDelete {
			q.Czxid = res.Zxid
		}
	}
	return q
}

// made returns the created paths.
func made(r queue.Request, res *session.Result) (paths []string) {
	for i := range r.Creates {
		if len(res.Sub) == 0 {
			return []string{res.Path}
		}
		paths = append(paths, res.Sub[i].Path)
	}
	return paths
}

// code returns the outcome of a request, like zklock.
func code(res *session.Result) queue.Code {
	// A fault means that there is no answer. The code depends on whether the server may have
	// applied the request.
	if res.Fault != nil {
		switch {
		case errors.Is(res.Fault, session.ErrSessionExpired), errors.Is(res.Fault, session.ErrClosed),
			errors.Is(res.Fault, session.ErrAuthFailed):
			return queue.SessionOver
		case res.Applied == session.Unknown:
			return queue.Unknown
		case errors.Is(res.Fault, session.ErrConnectionLost):
			return queue.NotApplied
		}
		return queue.Refused
	}
	switch res.Code {
	case wire.ErrOK:
		return queue.OK
	case wire.ErrNoNode:
		return queue.NoNode
	case wire.ErrNodeExists:
		return queue.NodeExists
	case wire.ErrBadVersion:
		return queue.BadVersion
	case wire.ErrUnimplemented:
		return queue.Unimplemented
	case wire.ErrSessionExpired, wire.ErrUnknownSession:
		return queue.SessionOver
	case wire.ErrThrottled, wire.ErrSessionMoved, wire.ErrNotReadOnly:
		return queue.NotApplied
	}
	switch {
	case res.Applied == session.Unknown:
		return queue.Unknown
	case res.Code == wire.ErrRuntimeInconsistency:
		return queue.Undone
	}
	return queue.Refused
}
