package zk

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	gopath "path"
	"slices"
	"strings"
)

// CreateProtected creates a sequential znode once, also if the connection is lost before the
// answer comes: then it searches for the znode, and creates it only if it does not exist. To
// find it, it puts a GUID before the name, as Curator's withProtection: the result is
// "/parent/_c_GUID-name0000000042" for the path "/parent/name". If the session ends before
// the search, an ephemeral znode is lost, and CreateProtected fails with [ErrSessionExpired].
// After any other error, such as that of ctx, the znode may exist, see [Applied]. If the
// servers move the session back (see [StateChange].GivenUp), they can execute a create that
// had no answer after the search. Then there are two znodes.
func (c *Client) CreateProtected(ctx context.Context, path string, data []byte, acl []ACL, mode CreateMode) (string, Stat, error) {
	fail := func(err error, applied Outcome) (string, Stat, error) {
		return "", Stat{}, &Error{Op: "create", Path: path, Err: err, applied: applied}
	}
	i := strings.LastIndexByte(path, '/')
	if mode != ModeEphemeralSequential && mode != ModePersistentSequential || i < 0 {
		return fail(ErrInvalidOp, AppliedNo)
	}
	var guid [16]byte
	_, _ = rand.Read(guid[:]) // it never fails
	name := fmt.Sprintf("_c_%x-%x-%x-%x-%x-%s", guid[:4], guid[4:6], guid[6:8], guid[8:10], guid[10:], path[i+1:])
	for op := CreateOp(path[:i+1]+name, data, acl, mode); ; {
		epoch := c.epochNow(0) // the create runs only in the session of this epoch
		res, err := c.doEpoch(ctx, epoch, &op, nil, nil)
		if !errors.Is(err, ErrConnectionLost) {
			return res.Path, res.Stat, err
		}
		if Applied(err) == AppliedNo {
			continue
		}
		made, stat, err := c.findProtected(ctx, gopath.Dir(path), name)
		switch {
		case err != nil:
			return fail(err, AppliedUnknown)
		case mode == ModeEphemeralSequential && c.epochNow(0) != epoch:
			return fail(ErrSessionExpired, AppliedUnknown)
		case made != "":
			return made, stat, nil
		}
	}
}

// findProtected returns the child of a znode whose name begins with prefix, "" if it does not
// exist. It lists the children after a write on the same connection: a session's requests
// are executed in order, so an earlier create of this session has been executed by then, or
// never will be. A listing alone may come from a server that has not executed it yet.
func (c *Client) findProtected(ctx context.Context, parent, prefix string) (string, Stat, error) {
	for {
		barrier, list := MultiOp(CheckOp(parent, -1)), ChildrenOp(parent, false)
		written, err := c.do(ctx, &barrier, nil, nil)
		var read Result
		if err == nil {
			read, err = c.do(ctx, &list, nil, nil)
		}
		if errors.Is(err, ErrNoNode) {
			return "", Stat{}, nil
		}
		found := ""
		var stat Stat
		if i := slices.IndexFunc(read.Children, func(s string) bool { return strings.HasPrefix(s, prefix) }); i >= 0 && err == nil {
			found = strings.TrimSuffix(parent, "/") + "/" + read.Children[i]
			stat, _, err = c.Exists(ctx, found) // another client may have deleted it since
		}
		switch {
		case errors.Is(err, ErrConnectionLost):
		case err != nil:
			return "", Stat{}, err
		case read.Conn == written.Conn:
			return found, stat, nil
		}
	}
}
