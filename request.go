package zklock

import (
	"errors"
	"slices"
	"strings"

	"github.com/zklock/zklock/internal/queue"
	"github.com/zklock/zklock/zk"
)

// toOp translates a request of the core for the ZooKeeper client.
func (c *Client) toOp(r *queue.Request) zk.Op {
	switch r.Kind {
	case queue.Create:
		if len(r.Creates) == 1 {
			return c.createOp(r.Creates[0])
		}
		return zk.MultiOp(c.createOps(r)...)
	case queue.Swap, queue.Renew, queue.MarkedDelete:
		ops := c.createOps(r)
		for i, p := range r.Paths {
			version := int32(-1)
			if r.Kind == queue.Swap {
				version = r.Versions[i]
			}
			ops = append(ops, zk.DeleteOp(p, version))
		}
		return zk.MultiOp(ops...)
	case queue.List:
		return zk.ChildrenOp(r.Path, r.Watch)
	case queue.Get:
		return zk.GetOp(r.Path, r.Watch)
	case queue.Set:
		return zk.SetOp(r.Path, r.Data, r.Version)
	case queue.SetAll:
		ops := make([]zk.Op, 0, len(r.Paths))
		for i, p := range r.Paths {
			ops = append(ops, zk.SetOp(p, r.Data, r.Versions[i]))
		}
		if len(ops) == 1 {
			return ops[0]
		}
		return zk.MultiOp(ops...)
	case queue.Delete:
		return zk.DeleteOp(r.Path, -1)
	case queue.Check:
		return zk.MultiOp(checkOps(r)...)
	case queue.Guard:
		own := checkOps(r)
		return zk.MultiOp(append(own, c.callOps(r.Call)...)...)
	case queue.SetWatches:
		var marks []string
		if r.Path != "" {
			marks = []string{r.Path}
		}
		return zk.SetWatchesOp(r.Zxid, r.Paths, marks)
	case queue.Unwatch:
		return zk.RemoveWatchesOp(r.Path, zk.WatchKindData)
	case queue.Sync:
		return zk.SyncOp(r.Path)
	case queue.Make:
		mode := zk.ModePersistent
		if r.Container {
			mode = zk.ModeContainer
		}
		acl := c.aclFor(r.Access, lockNode)
		if c.opts.ACL != nil && r.Above && letsEveryoneCreate(r.Access) && (c.zk.Authenticates() || r.Path+"/" == nameRoot) {
			acl = sharedACL(acl)
		}
		return zk.PlainCreateOp(r.Path, nonNil(r.Data), acl, mode)
	case queue.ReadAccess:
		return zk.GetACLOp(r.Path)
	case queue.Ping:
		return zk.ExistsOp(r.Path, false)
	}
	return zk.Op{} // invalid, and answered so
}

// createOp returns the operation that creates one znode.
func (c *Client) createOp(n queue.Creation) zk.Op {
	mode := zk.ModeEphemeral
	switch {
	case n.Sequential && n.Persistent:
		mode = zk.ModePersistentSequential
	case n.Sequential:
		mode = zk.ModeEphemeralSequential
	case n.Persistent:
		mode = zk.ModePersistent
	}
	return zk.PlainCreateOp(n.Path, nonNil(n.Data), c.aclFor(n.Access, entryNode), mode)
}

func (c *Client) createOps(r *queue.Request) []zk.Op {
	ops := make([]zk.Op, 0, len(r.Creates)+len(r.Paths))
	for _, n := range r.Creates {
		ops = append(ops, c.createOp(n))
	}
	return ops
}

func checkOps(r *queue.Request) []zk.Op {
	ops := make([]zk.Op, 0, len(r.Paths))
	for _, p := range r.Paths {
		ops = append(ops, zk.CheckOp(p, -1))
	}
	return ops
}

// nonNil returns data that are not nil: kazoo and Curator distinguish null data from
// empty data.
func nonNil(data []byte) []byte {
	if data == nil {
		return []byte{}
	}
	return data
}

// reply translates a result for the core.
func (f *pendingRequest) reply(res *zk.Result) queue.Reply {
	r := &f.request
	q := queue.Reply{
		ID: r.ID, Zxid: res.Zxid, Czxid: res.Stat.Czxid, Owner: res.Stat.EphemeralOwner,
		Version: res.Stat.Version, Ctime: res.Stat.Ctime, Mtime: res.Stat.Mtime, Mzxid: res.Stat.Mzxid,
		Data: res.Data, Children: res.Children,
		Sent: res.Sent, Received: res.Received, Conn: res.Conn,
		Err: res.Err, Code: code(res.Err), Failed: -1,
	}
	if r.Kind == queue.ReadAccess {
		q.Access = newParentACL(res.ACL, res.Err)
	}
	switch {
	case f.asksUnwatch && (res.Err == nil || errors.Is(res.Err, zk.ErrNoAuth)): // the znode exists
		f.client.unwatches.Store(true)
		q.Code = queue.NotApplied // and the watch is still set
	case res.Err != nil:
		q.Failed, q.Err = failedOp(res)
		q.TooLarge = errors.Is(res.Err, zk.ErrTooLarge)
		switch {
		case q.Failed >= 0:
			q.Code = code(q.Err)
		case r.Kind == queue.Guard && zk.Applied(res.Err) == zk.AppliedUnknown:
			q.Code = queue.Unknown // even if the session is over
		case errors.Is(q.Err, zk.ErrInvalidACL) && f.client.opts.ACL == nil && f.namesCreator && namesOthers(r):
			f.client.noCredentials.Store(true)
			q.Code = queue.NotApplied // and repeated without naming the creator
		}
	case r.Kind == queue.Create && len(r.Creates) == 1:
		f.created[0] = res.Path
		q.Made = f.created[:]
	case r.Kind == queue.Create || r.Kind == queue.Swap || r.Kind == queue.Renew || r.Kind == queue.MarkedDelete:
		q.Czxid = res.Zxid
		for i := range r.Creates {
			q.Made = append(q.Made, res.Results[i].Path)
		}
	}
	return q
}

// failedOp returns the index and the error of the operation that made a multi fail.
func failedOp(res *zk.Result) (int, error) {
	for i, sub := range res.Results {
		if sub.Err != nil && !errors.Is(sub.Err, zk.ErrRolledBack) {
			return i, sub.Err
		}
	}
	return -1, res.Err
}

// code classifies the error of a request.
func code(err error) queue.Code {
	switch {
	case err == nil:
		return queue.OK
	case errors.Is(err, zk.ErrNoNode):
		return queue.NoNode
	case errors.Is(err, zk.ErrNodeExists):
		return queue.NodeExists
	case errors.Is(err, zk.ErrBadVersion):
		return queue.BadVersion
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

// A parentACL is what the ACL of a parent permits for the znodes that a client with
// credentials creates below it. A nil *parentACL permits everything to everyone.
type parentACL struct {
	acl []zk.ACL
}

// maxACLSize bounds the size in bytes of an ACL that is copied to entries. A longer ACL
// counts as unreadable.
const maxACLSize = 16 << 10

// newParentACL returns what a read ACL permits. An unreadable ACL permits nothing, so
// only the creator may use what is created below it.
func newParentACL(list []zk.ACL, err error) queue.Access {
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	size := 0
	for _, a := range list {
		if a.Scheme == "world" && a.ID == "anyone" && a.Perms&zk.PermAll == zk.PermAll {
			return nil
		}
		size += 12 + len(a.Scheme) + len(a.ID)
	}
	switch {
	case err == nil && len(list) == 0: // which forbids nothing
		return nil
	case err != nil || size > maxACLSize:
		return &parentACL{}
	}
	return &parentACL{acl: slices.DeleteFunc(list, isMasked)}
}

// isMasked reports whether the servers hid the identity of an ACL entry, as they do if
// the client may not change the ACL.
func isMasked(a zk.ACL) bool { return a.Scheme == "digest" && strings.HasSuffix(a.ID, ":x") }

// A znodeUse is what a znode is created for.
type znodeUse uint8

const (
	entryNode znodeUse = iota // an entry or a record
	lockNode                  // the znode of a lock, or one above it
)

// aclFor returns the ACL of a new znode. The client's own identities get all permissions.
// An identity that may create the znode of a lock may use the lock, for which it needs
// the permission to delete its own entry in it.
func (c *Client) aclFor(from queue.Access, what znodeUse) []zk.ACL {
	a, ok := from.(*parentACL)
	if !ok || c.opts.ACL != nil {
		return c.opts.ACL
	}
	list := slices.Clone(a.acl)
	if what == lockNode {
		for i := range list {
			if list[i].Perms&permMakes == permMakes {
				list[i].Perms |= zk.PermDelete
			}
		}
	}
	if !c.noCredentials.Load() || len(list) == 0 {
		list = append(list, zk.CreatorACL()...)
	}
	return list
}

// permMakes are the permissions that a client needs to create locks below a znode.
const permMakes = zk.PermCreate | zk.PermRead

// openToAll reports whether an ACL lets everyone create locks.
func openToAll(list []zk.ACL) bool {
	return slices.ContainsFunc(list, func(a zk.ACL) bool { return a.Scheme == "world" && a.Perms&permMakes == permMakes })
}

// letsEveryoneCreate reports whether everyone may create locks below a znode. A client without
// credentials reads no Access, and counts every znode as open.
func letsEveryoneCreate(from queue.Access) bool {
	a, ok := from.(*parentACL)
	return !ok || openToAll(a.acl)
}

// sharedACL returns an ACL for a parent of the locks of several clients: it also lets everyone
// create and read. The znode of each lock keeps the ACL of its creator.
func sharedACL(list []zk.ACL) []zk.ACL {
	if openToAll(list) {
		return list
	}
	return append(slices.Clip(list), zk.ACL{Perms: permMakes, Scheme: "world", ID: "anyone"})
}

// namesOthers reports whether a request creates znodes with the ACL of a parent, and that
// ACL names other identities than the creator. Servers that accept none of the client's
// identities, for example because they do not ask for its certificate, reject only the
// entry for the creator.
func namesOthers(r *queue.Request) bool {
	from := r.Access
	for _, n := range r.Creates {
		from = n.Access
	}
	a, ok := from.(*parentACL)
	return ok && len(a.acl) > 0
}
