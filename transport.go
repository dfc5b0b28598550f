package zklock

import (
	"errors"
	"time"

	"github.com/zklock/zklock/internal/queue"
	"github.com/zklock/zklock/zk"
)

// A flight is one of the core's requests on its way. Flights are used again.
type flight struct {
	client *Client
	r      queue.Request
	made   [1]string // for the reply
	named  bool      // what it makes from a parent's list names the creator
	land   func(zk.Result)
}

// send puts one of the core's requests on the wire, and its answer into the core.
func (c *Client) send(r *queue.Request) {
	f, ok := c.flights.Get().(*flight)
	if !ok {
		f = &flight{client: c}
		f.land = f.landed
	}
	f.r, f.named = *r, !c.unproven.Load()
	op := c.operation(r)
	if r.Join {
		op = zk.JoinOp(op)
	}
	c.zk.GoIn(r.Session, op, f.land)
}

// landed puts the answer into the core.
func (f *flight) landed(res zk.Result) {
	c := f.client
	q := f.reply(&res)
	c.step(func(core *queue.Core, now time.Duration) { core.Reply(now, q) })
	f.r, f.made = queue.Request{}, [1]string{}
	c.flights.Put(f)
}

// operation says a request in the client's terms.
func (c *Client) operation(r *queue.Request) zk.Op {
	switch r.Kind {
	case queue.Create:
		if len(r.Creates) == 1 {
			return c.creation(r.Creates[0])
		}
		return zk.MultiOp(c.creations(r)...)
	case queue.Swap, queue.Renew:
		ops := c.creations(r)
		for _, p := range r.Paths {
			ops = append(ops, zk.DeleteOp(p, -1))
		}
		return zk.MultiOp(ops...)
	case queue.List:
		return zk.ChildrenOp(r.Path, r.Watch)
	case queue.Get:
		return zk.GetOp(r.Path, r.Watch)
	case queue.Set:
		return zk.SetOp(r.Path, r.Data, r.Version)
	case queue.Delete:
		return zk.DeleteOp(r.Path, -1)
	case queue.Check:
		return zk.MultiOp(checks(r)...)
	case queue.Guard:
		own := checks(r)
		return zk.MultiOp(append(own, c.opsOf(r.Call)...)...)
	case queue.Sync:
		return zk.SyncOp(r.Path)
	case queue.Make:
		mode := zk.ModePersistent
		if r.Container {
			mode = zk.ModeContainer
		}
		return zk.CreateOp(r.Path, orEmpty(r.Data), c.listOf(r.Access, lockNode), mode)
	case queue.ReadAccess:
		return zk.GetACLOp(r.Path)
	}
	return zk.Op{} // invalid, and answered so
}

// creation is the operation that makes one znode.
func (c *Client) creation(n queue.Creation) zk.Op {
	mode := zk.ModeEphemeral
	switch {
	case n.Sequential && n.Persistent:
		mode = zk.ModePersistentSequential
	case n.Sequential:
		mode = zk.ModeEphemeralSequential
	case n.Persistent:
		mode = zk.ModePersistent
	}
	return zk.CreateOp(n.Path, orEmpty(n.Data), c.listOf(n.Access, entryNode), mode)
}

func (c *Client) creations(r *queue.Request) []zk.Op {
	ops := make([]zk.Op, 0, len(r.Creates)+len(r.Paths))
	for _, n := range r.Creates {
		ops = append(ops, c.creation(n))
	}
	return ops
}

func checks(r *queue.Request) []zk.Op {
	ops := make([]zk.Op, 0, len(r.Paths))
	for _, p := range r.Paths {
		ops = append(ops, zk.CheckOp(p, -1))
	}
	return ops
}

// orEmpty keeps other libraries from a znode whose data are null: kazoo and
// Curator tell null from empty.
func orEmpty(data []byte) []byte {
	if data == nil {
		return []byte{}
	}
	return data
}

// reply says a result in the core's terms.
func (f *flight) reply(res *zk.Result) queue.Reply {
	r := &f.r
	q := queue.Reply{
		ID: r.ID, Zxid: res.Zxid, Czxid: res.Stat.Czxid, Owner: res.Stat.EphemeralOwner,
		Version: res.Stat.Version, Ctime: res.Stat.Ctime, Mtime: res.Stat.Mtime, Mzxid: res.Stat.Mzxid,
		Data: res.Data, Children: res.Children,
		Sent: res.Sent, Received: res.Received, Conn: res.Conn,
		Err: res.Err, Code: code(res.Err), Failed: -1,
	}
	if r.Kind == queue.ReadAccess {
		q.Access = accessOf(res.ACL, res.Err)
	}
	switch {
	case res.Err != nil:
		q.Failed, q.Err = failure(res)
		switch {
		case q.Failed >= 0:
			q.Code = code(q.Err)
		case r.Kind == queue.Guard && zk.Applied(res.Err) == zk.AppliedUnknown:
			q.Code = queue.Unknown // even where the session is over
		case errors.Is(q.Err, zk.ErrInvalidACL) && f.named && inherits(r):
			f.client.unproven.Store(true)
			q.Code = queue.NotApplied // and tried again without
		}
	case r.Kind == queue.Create && len(r.Creates) == 1:
		f.made[0] = res.Path
		q.Made = f.made[:]
	case r.Kind == queue.Create || r.Kind == queue.Swap || r.Kind == queue.Renew:
		q.Czxid = res.Zxid
		for i := range r.Creates {
			q.Made = append(q.Made, res.Results[i].Path)
		}
	}
	return q
}

// failure finds the operation that made a multi fail.
func failure(res *zk.Result) (int, error) {
	for i, sub := range res.Results {
		if sub.Err != nil && !errors.Is(sub.Err, zk.ErrRolledBack) {
			return i, sub.Err
		}
	}
	return -1, res.Err
}

// code says how a request ended.
func code(err error) queue.Code {
	switch {
	case err == nil:
		return queue.OK
	case errors.Is(err, zk.ErrNoNode):
		return queue.NoNode
	case errors.Is(err, zk.ErrNodeExists):
		return queue.NodeExists
	case errors.Is(err, zk.ErrUnimplemented):
		return queue.Unimplemented
	case errors.Is(err, zk.ErrSessionExpired), errors.Is(err, zk.ErrClosed), errors.Is(err, zk.ErrAuthFailed):
		return queue.SessionOver
	case errors.Is(err, zk.ErrThrottled), errors.Is(err, zk.ErrSessionMoved), errors.Is(err, zk.ErrNotReadOnly):
		return queue.NotApplied
	case zk.Applied(err) == zk.AppliedUnknown:
		return queue.Unknown
	case errors.Is(err, zk.ErrRolledBack):
		return queue.Undone
	case errors.Is(err, zk.ErrConnectionLost):
		return queue.NotApplied
	}
	return queue.Refused
}
