package zklock

import (
	"errors"
	"time"

	"github.com/zklock/zklock/internal/queue"
	"github.com/zklock/zklock/zk"
)

// send puts one of the core's requests on the wire, and its answer into the core.
func (c *Client) send(r queue.Request) {
	c.zk.Go(c.operation(r), func(res zk.Result) {
		c.step(func(core *queue.Core, now time.Duration) { core.Reply(now, reply(r, res)) })
	})
}

// operation says a request in the client's terms.
func (c *Client) operation(r queue.Request) zk.Op {
	switch r.Kind {
	case queue.Create:
		return zk.CreateOp(r.Path, r.Data, c.opts.ACL, zk.ModeEphemeralSequential)
	case queue.List:
		return zk.ChildrenOp(r.Path, false)
	case queue.Get:
		return zk.GetOp(r.Path, true)
	case queue.Delete:
		return zk.DeleteOp(r.Path, -1)
	case queue.Check:
		checks := make([]zk.Op, len(r.Paths))
		for i, p := range r.Paths {
			checks[i] = zk.CheckOp(p, -1)
		}
		return zk.MultiOp(checks...)
	case queue.Make:
		mode := zk.ModePersistent
		if r.Container {
			mode = zk.ModeContainer
		}
		return zk.CreateOp(r.Path, []byte{}, c.opts.ACL, mode)
	}
	return zk.Op{} // invalid, and answered so
}

// reply says a result in the core's terms.
func reply(r queue.Request, res zk.Result) queue.Reply {
	q := queue.Reply{
		ID: r.ID, Path: res.Path, Czxid: res.Stat.Czxid, Owner: res.Stat.EphemeralOwner,
		Data: res.Data, Children: res.Children,
		Sent: res.Sent, Received: res.Received, Conn: res.Conn,
		Err: res.Err, Code: code(res.Err), Failed: -1,
	}
	for i, sub := range res.Results {
		if r.Kind == queue.Check && sub.Err != nil && !errors.Is(sub.Err, zk.ErrRolledBack) {
			q.Failed, q.Code, q.Err = i, code(sub.Err), sub.Err
			break
		}
	}
	return q
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
	case errors.Is(err, zk.ErrConnectionLost):
		return queue.NotApplied
	}
	return queue.Refused
}
