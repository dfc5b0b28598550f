package zk

import (
	"context"
	"time"

	"github.com/zklock/zklock/internal/session"
	"github.com/zklock/zklock/internal/wire"
)

// Create creates a znode and returns its path, which for a sequential mode ends
// in the number, and its Stat. A nil acl means [OpenACL]. For modes with a TTL
// see [Client.CreateTTL].
func (c *Client) Create(ctx context.Context, path string, data []byte, acl []ACL, mode CreateMode) (string, Stat, error) {
	op := CreateOp(path, data, acl, mode)
	res, err := c.do(ctx, &op, nil, nil)
	return res.Path, res.Stat, err
}

// CreateTTL creates a znode that the server deletes once it was unchanged and
// childless for ttl, at least a millisecond; see [CreateTTLOp]. Servers have to
// be told to permit it, else they answer [ErrUnimplemented].
func (c *Client) CreateTTL(ctx context.Context, path string, data []byte, acl []ACL, mode CreateMode, ttl time.Duration) (string, Stat, error) {
	op := CreateTTLOp(path, data, acl, mode, ttl)
	res, err := c.do(ctx, &op, nil, nil)
	return res.Path, res.Stat, err
}

// Delete deletes a znode that has this version; -1 means any.
func (c *Client) Delete(ctx context.Context, path string, version int32) error {
	op := DeleteOp(path, version)
	_, err := c.do(ctx, &op, nil, nil)
	return err
}

// Exists reports whether there is a znode, and its Stat.
func (c *Client) Exists(ctx context.Context, path string) (Stat, bool, error) {
	op := ExistsOp(path, false)
	res, err := c.do(ctx, &op, nil, nil)
	found, err := foundOf(err)
	return res.Stat, found, err
}

// foundOf makes an answer of the error for a missing znode.
func foundOf(err error) (bool, error) {
	if e, ok := err.(*Error); ok && e.Err == ErrNoNode {
		return false, nil
	}
	return err == nil, err
}

// Get reads a znode's data and Stat. The data belong to the caller; nil and
// empty are told apart.
func (c *Client) Get(ctx context.Context, path string) ([]byte, Stat, error) {
	op := GetOp(path, false)
	res, err := c.do(ctx, &op, nil, nil)
	return res.Data, res.Stat, err
}

// Set sets the data of a znode that has this version, -1 meaning any, and
// returns its new Stat.
func (c *Client) Set(ctx context.Context, path string, data []byte, version int32) (Stat, error) {
	op := SetOp(path, data, version)
	res, err := c.do(ctx, &op, nil, nil)
	return res.Stat, err
}

// Children returns the names of a znode's children, in no particular order, and
// the znode's Stat.
func (c *Client) Children(ctx context.Context, path string) ([]string, Stat, error) {
	op := ChildrenOp(path, false)
	res, err := c.do(ctx, &op, nil, nil)
	return res.Children, res.Stat, err
}

// GetW is [Client.Get] with a watch, as described at [Client.ExistsW]. The
// channel tells when the data change or the znode is deleted. A missing znode
// is [ErrNoNode], without a watch and a channel.
func (c *Client) GetW(ctx context.Context, path string) ([]byte, Stat, <-chan Event, error) {
	op := GetOp(path, true)
	res, ch, err := c.doWatch(ctx, &op)
	return res.Data, res.Stat, ch, err
}

// ExistsW is [Client.Exists] with a watch. The channel tells when the znode is
// created, deleted, or its data change.
//
// The channel receives exactly one event and is then closed; or it is closed
// without one because the session has ended or the client was closed. The watch
// survives a lost connection: a change in the meantime is told after
// reconnecting. The channel has room for the event, so it may be left unread.
// If an error is returned, the channel is nil. Other watches on the same path
// may make the event come for a change that happened before this request was
// answered, never for one before it was made.
func (c *Client) ExistsW(ctx context.Context, path string) (Stat, bool, <-chan Event, error) {
	op := ExistsOp(path, true)
	res, ch, err := c.doWatch(ctx, &op)
	found, err := foundOf(err)
	return res.Stat, found, ch, err
}

// ChildrenW is [Client.Children] with a watch, as described at
// [Client.ExistsW]. The channel tells when a child is created or deleted, or
// the znode itself is deleted. See [Client.AddWatch] for a path that has both.
func (c *Client) ChildrenW(ctx context.Context, path string) ([]string, Stat, <-chan Event, error) {
	op := ChildrenOp(path, true)
	res, ch, err := c.doWatch(ctx, &op)
	return res.Children, res.Stat, ch, err
}

// doWatch sends a request with a watch, and registers a channel for it in the
// order of the wire: behind the answer, before any event that follows.
func (c *Client) doWatch(ctx context.Context, op *Op) (Result, <-chan Event, error) {
	var ch <-chan Event
	res, err := c.do(ctx, op, (*call).registerWatch, func(k *call) { ch = k.watch })
	return res, ch, err
}

// registerWatch runs in the order of the wire. What sets a watch is what the
// server holds to: success, and for exists also a missing znode.
func (k *call) registerWatch() {
	missing := k.Op.Code == wire.OpExists && k.Result.Code == wire.ErrNoNode
	if k.Result.Fault != nil || k.Result.Code != wire.ErrOK && !missing {
		return
	}
	w := &k.client.watchers
	if k.Op.Code == wire.OpGetChildren2 {
		k.watch = w.add(&w.children, k.Op.Path)
		return
	}
	k.watch = w.add(&w.data, k.Op.Path)
}

// Multi does all of ops or none, or reads with all of them; see [MultiOp]. The
// results are in the order of ops. When one operation fails, the error is its
// and the results are returned as well.
func (c *Client) Multi(ctx context.Context, ops ...Op) ([]Result, error) {
	op := MultiOp(ops...)
	res, err := c.do(ctx, &op, nil, nil)
	return res.Results, err
}

// Sync makes the server catch up with what the leader had committed when it saw
// the request.
func (c *Client) Sync(ctx context.Context, path string) error {
	op := SyncOp(path)
	_, err := c.do(ctx, &op, nil, nil)
	return err
}

// GetACL returns a znode's access control list and its Stat. Servers hide the
// secrets in it from those who may not change it.
func (c *Client) GetACL(ctx context.Context, path string) ([]ACL, Stat, error) {
	op := GetACLOp(path)
	res, err := c.do(ctx, &op, nil, nil)
	return res.ACL, res.Stat, err
}

// SetACL sets a znode's access control list if the list has this version
// (Stat.Aversion), -1 meaning any, and returns the new Stat. A nil acl means
// [OpenACL].
func (c *Client) SetACL(ctx context.Context, path string, acl []ACL, version int32) (Stat, error) {
	op := Op{op: session.Op{Code: wire.OpSetACL, Path: path, ACL: wireACL(acl), Version: version}}
	res, err := c.do(ctx, &op, nil, nil)
	return res.Stat, err
}

// AddWatch adds a watch that stays when it fires. Its events go to listeners,
// see [Client.Listen]. It survives reconnecting, but changes that happened
// without a connection are not told: read again what matters when connected
// again. It ends with the session. Needs servers from 3.6 on.
//
// Use one kind of watch on a path. Before ZooKeeper 3.9 a server keeps only the
// latest kind that a session set on a path (ZOOKEEPER-4466): AddWatch with
// [WatchRecursive] silences an earlier [Client.ChildrenW] there, and a later
// one-shot watch ends the AddWatch when it fires. The server reports neither. If
// you need both kinds on one path, use two clients.
func (c *Client) AddWatch(ctx context.Context, path string, mode AddWatchMode) error {
	op := Op{op: session.Op{Code: wire.OpAddWatch, Path: path, Lasting: wire.AddWatchMode(mode)}}
	_, err := c.do(ctx, &op, nil, nil)
	return err
}

// RemoveWatches removes the session's watches of a kind on a path, whoever set
// them. Their channels and the listeners get an event that says so. Without
// such a watch it is [ErrNoWatcher].
func (c *Client) RemoveWatches(ctx context.Context, path string, kind WatchKind) error {
	op := Op{op: session.Op{Code: wire.OpRemoveWatches, Path: path, Type: wire.WatcherType(kind)}}
	_, err := c.do(ctx, &op, nil, nil)
	return err
}

// Ephemerals returns the paths of this session's ephemeral znodes that begin
// with a prefix, itself a path. Needs servers from 3.6 on.
func (c *Client) Ephemerals(ctx context.Context, prefix string) ([]string, error) {
	op := Op{op: session.Op{Code: wire.OpGetEphemerals, Path: prefix}}
	res, err := c.do(ctx, &op, nil, nil)
	for i, p := range res.Children {
		res.Children[i] = c.root.strip(p)
	}
	return res.Children, err
}

// AllChildrenNumber returns how many znodes there are below a path at any
// depth. Needs servers from 3.6 on.
func (c *Client) AllChildrenNumber(ctx context.Context, path string) (int, error) {
	op := Op{op: session.Op{Code: wire.OpGetAllChildrenNumber, Path: path}}
	n := 0
	_, err := c.do(ctx, &op, nil, func(k *call) { n = int(k.Result.Count) })
	return n, err
}

// WhoAmI returns the identities of the connection. Needs servers from 3.7 on.
func (c *Client) WhoAmI(ctx context.Context) ([]Identity, error) {
	op := Op{op: session.Op{Code: wire.OpWhoAmI}}
	var who []Identity
	_, err := c.do(ctx, &op, nil, func(k *call) {
		for _, u := range k.Result.Users {
			who = append(who, Identity{Scheme: u.AuthScheme, User: u.User})
		}
	})
	return who, err
}

// AddAuth adds credentials to this and all later connections of the client; for
// the scheme "digest" they are "user:password". It returns when a server has
// taken them, whatever connections are lost meanwhile. When ctx ends first they
// are used all the same. If the server refuses, the client has failed for good
// and every request with [ErrAuthFailed]. A digest is never refused: a wrong
// password just gives no rights.
func (c *Client) AddAuth(ctx context.Context, scheme string, data []byte) error {
	op := Op{op: session.Op{Code: wire.OpAuth, Scheme: scheme, Data: data}}
	c.authed.Store(true)
	_, err := c.do(ctx, &op, nil, nil)
	return err
}

// Authenticates reports whether the client gives the servers credentials: by its
// Options, a TLS certificate among them, or by AddAuth.
func (c *Client) Authenticates() bool {
	o := c.opts
	certificate := o.TLS != nil && (len(o.TLS.Certificates) > 0 || o.TLS.GetClientCertificate != nil)
	return len(o.Auth) > 0 || o.SASL != nil || certificate || c.authed.Load()
}

// configPath is where servers keep their ensemble's configuration.
const configPath = "/zookeeper/config"

// GetConfig returns the ensemble's configuration as servers keep it, whatever
// the client's chroot.
func (c *Client) GetConfig(ctx context.Context) ([]byte, Stat, error) {
	op := GetOp(configPath, false)
	op.absolute = true
	res, err := c.do(ctx, &op, nil, nil)
	return res.Data, res.Stat, err
}
