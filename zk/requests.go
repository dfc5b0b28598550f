package zk

import (
	"context"
	"errors"
	"time"

	"github.com/zklock/zklock/internal/session"
	"github.com/zklock/zklock/internal/wire"
)

// Create creates a znode. It returns its path, which for a sequential mode ends in
// the sequence number, and its Stat; see [CreateOp] for servers before 3.5. A nil acl
// means [OpenACL]. For modes with a TTL see [Client.CreateTTL].
func (c *Client) Create(ctx context.Context, path string, data []byte, acl []ACL, mode CreateMode) (string, Stat, error) {
	op := CreateOp(path, data, acl, mode)
	res, err := c.do(ctx, &op, nil, nil)
	return res.Path, res.Stat, err
}

// CreateTTL creates a znode that the server deletes when it has had no change and no
// children for ttl, at least a millisecond; see [CreateTTLOp]. Servers must be
// configured to permit it; otherwise they answer [ErrUnimplemented].
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

// Exists reports whether a znode exists, and returns its Stat.
func (c *Client) Exists(ctx context.Context, path string) (Stat, bool, error) {
	op := ExistsOp(path, false)
	res, err := c.do(ctx, &op, nil, nil)
	found, err := existsOf(err)
	return res.Stat, found, err
}

// existsOf returns whether a znode exists, from the error of an exists request.
func existsOf(err error) (bool, error) {
	if errors.Is(err, ErrNoNode) {
		return false, nil
	}
	return err == nil, err
}

// Get returns a znode's data and Stat. The data belong to the caller. Nil and empty
// data are different.
func (c *Client) Get(ctx context.Context, path string) ([]byte, Stat, error) {
	op := GetOp(path, false)
	res, err := c.do(ctx, &op, nil, nil)
	return res.Data, res.Stat, err
}

// Set sets the data of a znode that has this version (-1 means any), and returns its
// new Stat.
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

// GetW is [Client.Get] with a watch, as described at [Client.ExistsW]. The channel
// reports that the data changed or the znode was deleted. If the znode was deleted and
// created again while the client was disconnected, the event is [EventNodeDataChanged]. If
// the znode is missing, GetW fails with [ErrNoNode], sets no watch, and returns no channel.
func (c *Client) GetW(ctx context.Context, path string) ([]byte, Stat, <-chan Event, error) {
	op := GetOp(path, true)
	res, ch, err := c.doWatch(ctx, &op)
	return res.Data, res.Stat, ch, err
}

// ExistsW is [Client.Exists] with a watch. The channel reports that the znode was
// created or deleted, or its data changed.
//
// The channel receives exactly one event and is then closed. If the session ends or
// the client is closed, the channel is closed without an event. The channel is buffered,
// so the event need not be read. If an error is returned, the channel is nil. If other
// watches are set on the same path, the event may be for a change that happened before
// this request was answered, but never for one before it was made.
//
// The watch survives a lost connection: after reconnecting, the channel reports a change
// that happened in between. The server then compares only the states before and after. If
// a missing znode was created and deleted in between, there is no event, and the watch
// stays. If a znode was deleted and created again, the event is [EventNodeDataChanged].
func (c *Client) ExistsW(ctx context.Context, path string) (Stat, bool, <-chan Event, error) {
	op := ExistsOp(path, true)
	res, ch, err := c.doWatch(ctx, &op)
	found, err := existsOf(err)
	return res.Stat, found, ch, err
}

// ChildrenW is [Client.Children] with a watch, as described at [Client.ExistsW]. The
// channel reports that a child was created or deleted, or that the znode itself was
// deleted. If the znode was deleted and created again while the client was disconnected,
// the event is [EventNodeChildrenChanged], as for a child that was created and deleted.
// See [Client.AddWatch] for a path that has both.
func (c *Client) ChildrenW(ctx context.Context, path string) ([]string, Stat, <-chan Event, error) {
	op := ChildrenOp(path, true)
	res, ch, err := c.doWatch(ctx, &op)
	return res.Children, res.Stat, ch, err
}

// doWatch sends a request with a watch. It registers a channel for the watch in wire
// order: after the answer, before any later event.
func (c *Client) doWatch(ctx context.Context, op *Op) (Result, <-chan Event, error) {
	var ch <-chan Event
	res, err := c.do(ctx, op, (*call).registerWatch, func(k *call) { ch = k.watch })
	return res, ch, err
}

// registerWatch runs in wire order. It registers a watch only if the server has set
// one: after success, and for exists also if the znode is missing.
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

// Multi executes all of ops or none of them, or reads with all of them; see
// [MultiOp]. The results are in the order of ops. If an operation fails, Multi
// returns its error, and the results too.
func (c *Client) Multi(ctx context.Context, ops ...Op) ([]Result, error) {
	op := MultiOp(ops...)
	res, err := c.do(ctx, &op, nil, nil)
	return res.Results, err
}

// Sync makes the server apply everything that the leader had committed when it
// received the request.
func (c *Client) Sync(ctx context.Context, path string) error {
	op := SyncOp(path)
	_, err := c.do(ctx, &op, nil, nil)
	return err
}

// GetACL returns a znode's access control list and its Stat. Servers hide the secrets
// in it from clients that may not change the list.
func (c *Client) GetACL(ctx context.Context, path string) ([]ACL, Stat, error) {
	op := GetACLOp(path)
	res, err := c.do(ctx, &op, nil, nil)
	return res.ACL, res.Stat, err
}

// SetACL sets a znode's access control list if the list has this version
// (Stat.Aversion; -1 means any), and returns the new Stat. A nil acl means [OpenACL].
func (c *Client) SetACL(ctx context.Context, path string, acl []ACL, version int32) (Stat, error) {
	op := SetACLOp(path, acl, version)
	res, err := c.do(ctx, &op, nil, nil)
	return res.Stat, err
}

// AddWatch adds a persistent watch, which stays when it fires. Listeners receive its
// events; see [Client.Listen]. [Client.AddWatchFunc] passes them to one function. The watch
// survives reconnects, but changes that happen without a connection are not reported: read
// again after reconnecting. It ends with the session. It needs servers 3.6 or later. If the client
// reconnects to an older server, it ends with [EventPersistentWatchRemoved].
//
// Use one kind of watch on a path. Before ZooKeeper 3.9, a server keeps only the
// latest kind that a session set on a path (ZOOKEEPER-4466): AddWatch with
// [WatchRecursive] silences an earlier [Client.ChildrenW] there, and a later one-shot
// watch ends the AddWatch when it fires. The server reports neither. If you need both
// kinds on one path, use two clients.
func (c *Client) AddWatch(ctx context.Context, path string, mode AddWatchMode) error {
	op := AddWatchOp(path, mode)
	_, err := c.do(ctx, &op, nil, nil)
	return err
}

// RemoveWatches removes all of the session's watches of a kind on a path. Their
// channels and the listeners receive an event that says so. If there is no such
// watch, it fails with [ErrNoWatcher].
//
// Before ZooKeeper 3.9, servers do not know [WatchKindPersistent] and [WatchKindRecursive], for
// which RemoveWatches fails with [ErrUnimplemented]. With [WatchKindData] or
// [WatchKindChildren], they also end a part of the watch of [Client.AddWatch] on the path,
// without an event (ZOOKEEPER-4471). Use [WatchKindAny] there.
func (c *Client) RemoveWatches(ctx context.Context, path string, kind WatchKind) error {
	op := RemoveWatchesOp(path, kind)
	_, err := c.do(ctx, &op, nil, nil)
	return err
}

// Ephemerals returns the paths of this session's ephemeral znodes that begin with a
// prefix, which must be a path. It needs servers 3.6 or later.
func (c *Client) Ephemerals(ctx context.Context, prefix string) ([]string, error) {
	op := Op{op: session.Op{Code: wire.OpGetEphemerals, Path: prefix}}
	res, err := c.do(ctx, &op, nil, nil)
	for i, p := range res.Children {
		res.Children[i] = c.root.strip(p)
	}
	return res.Children, err
}

// AllChildrenNumber returns the number of znodes below a path at any depth. It needs
// servers 3.6 or later.
func (c *Client) AllChildrenNumber(ctx context.Context, path string) (int, error) {
	op := Op{op: session.Op{Code: wire.OpGetAllChildrenNumber, Path: path}}
	n := 0
	_, err := c.do(ctx, &op, nil, func(k *call) { n = int(k.Result.Count) })
	return n, err
}

// WhoAmI returns the identities of the connection. It needs servers 3.7 or later.
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

// AddAuth adds credentials to this and all later connections of the client. For the
// scheme "digest" they are "user:password". AddAuth returns when a server has
// accepted them, even if connections are lost in between. If ctx ends first, the
// credentials are used nevertheless. If the server refuses them, the client fails
// permanently, and every request fails with [ErrAuthFailed]. A server never refuses a
// digest: a wrong password only gives no permissions.
func (c *Client) AddAuth(ctx context.Context, scheme string, data []byte) error {
	op := Op{op: session.Op{Code: wire.OpAuth, Scheme: scheme, Data: data}}
	c.authed.Store(true)
	_, err := c.do(ctx, &op, nil, nil)
	return err
}

// Authenticates reports whether the client sends credentials: by Options (including a
// TLS certificate) or by AddAuth.
func (c *Client) Authenticates() bool {
	o := c.opts
	certificate := o.TLS != nil && (len(o.TLS.Certificates) > 0 || o.TLS.GetClientCertificate != nil)
	return len(o.Auth) > 0 || o.SASL != nil || certificate || c.authed.Load()
}
