package zk

import (
	"context"
	"errors"
	gopath "path"
	"slices"
	"strings"
)

// EnsurePath creates a znode and those above it, unless they exist, as persistent znodes
// without data. It needs no permission for znodes that exist. A nil acl means [OpenACL].
// EnsurePath creates nothing above the chroot of the client: if the chroot is missing, it
// fails with [ErrNoNode]. The path "/" is the chroot itself, which EnsurePath creates if the
// znode above it exists.
func (c *Client) EnsurePath(ctx context.Context, path string, acl []ACL) error {
	var missing []string // from path upward
	for at := path; ; at = gopath.Dir(at) {
		err := c.ensureOne(ctx, at, acl)
		if err == nil {
			break
		}
		if !errors.Is(err, ErrNoNode) || gopath.Dir(at) == "/" {
			return err
		}
		missing = append(missing, at)
	}
	for _, at := range slices.Backward(missing) {
		if err := c.ensureOne(ctx, at, acl); err != nil {
			return err
		}
	}
	return nil
}

// ensureOne creates a znode unless it exists. Servers check the permission to create before
// they check whether the znode exists.
func (c *Client) ensureOne(ctx context.Context, path string, acl []ACL) error {
	_, _, err := c.Create(ctx, path, []byte{}, acl, ModePersistent)
	if errors.Is(err, ErrNoAuth) {
		if _, found, failed := c.Exists(ctx, path); found || failed != nil {
			return failed
		}
	}
	if errors.Is(err, ErrNodeExists) {
		return nil
	}
	return err
}

// DeleteAll deletes a znode and everything below it. It succeeds if the znode is missing. It
// is not atomic: if it fails, it may have deleted a part, and can be repeated. Znodes that
// other clients create below meanwhile are deleted too.
func (c *Client) DeleteAll(ctx context.Context, path string) error {
	for {
		children, _, err := c.Children(ctx, path)
		if err == nil {
			err = c.deleteChildren(ctx, path, children)
		}
		if err == nil {
			err = c.Delete(ctx, path, -1)
		}
		switch {
		case errors.Is(err, ErrNoNode):
			return nil
		case !errors.Is(err, ErrNotEmpty):
			return err
		}
	}
}

// maxDeletes is the number of deletes that are sent before the first is answered.
const maxDeletes = 1000

// deleteChildren deletes children of a znode, with everything below them.
func (c *Client) deleteChildren(ctx context.Context, path string, children []string) error {
	for some := range slices.Chunk(children, maxDeletes) {
		results := make(chan Result, len(some)) // has room for all, so that no sender waits
		for _, child := range some {
			c.Go(DeleteOp(strings.TrimSuffix(path, "/")+"/"+child, -1), func(r Result) { results <- r })
		}
		for range some {
			var err error
			select {
			case r := <-results:
				err = r.Err
			case <-ctx.Done():
				return &Error{Op: "delete all", Path: path, Err: ctx.Err(), applied: AppliedUnknown}
			}
			var failed *Error
			switch {
			case err == nil, errors.Is(err, ErrNoNode):
			case errors.Is(err, ErrNotEmpty) && errors.As(err, &failed):
				if err := c.DeleteAll(ctx, failed.Path); err != nil {
					return err
				}
			default:
				return err
			}
		}
	}
	return nil
}
