package zk

import (
	"context"
	"errors"
	"fmt"
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
// other clients create below meanwhile are deleted too. If the znodes are more than 512 levels
// deep, DeleteAll fails with [ErrNotEmpty].
func (c *Client) DeleteAll(ctx context.Context, path string) error {
	return c.deleteAll(ctx, path, 0)
}

// Limits of DeleteAll: a hostile server can list children below each znode, without end.
const (
	maxDeletes      = 1000     // deletes that are sent before the first is answered
	maxDeleteDepth  = 512      // levels below the path
	maxParentsBytes = 32 << 10 // paths in flight, and paths of children with children at each level
)

// deleteAll is DeleteAll for a znode that is so many levels below the path.
func (c *Client) deleteAll(ctx context.Context, path string, depth int) error {
	if depth > maxDeleteDepth {
		err := fmt.Errorf("%w: more than %d levels of them", ErrNotEmpty, maxDeleteDepth)
		return &Error{Op: "delete all", Path: path, Err: err}
	}
	for {
		parents, err := c.deleteChildren(ctx, path)
		for _, parent := range parents {
			if err := c.deleteAll(ctx, parent, depth+1); err != nil {
				return err
			}
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

// deleteChildren deletes the children of a znode, and returns the paths of those that have
// children. It ends early if there are many of these, so that only one delete fails for each.
func (c *Client) deleteChildren(ctx context.Context, path string) (parents []string, err error) {
	children, _, err := c.Children(ctx, path)
	if err != nil {
		return nil, err
	}
	for size := 0; len(children) > 0 && size < maxParentsBytes; { // size is that of parents
		results := make(chan Result, min(len(children), maxDeletes)) // no sender waits
		sent, bytes := 0, 0
		for ; sent < cap(results) && bytes < maxParentsBytes; sent++ {
			child := strings.TrimSuffix(path, "/") + "/" + children[sent]
			bytes += len(child)
			c.Go(DeleteOp(child, -1), func(r Result) { results <- r })
		}
		children = children[sent:]
		for range sent {
			var err error
			select {
			case r := <-results:
				err = r.Err
			case <-ctx.Done():
				return nil, &Error{Op: "delete all", Path: path, Err: ctx.Err(), applied: AppliedUnknown}
			}
			var failed *Error
			switch {
			case err == nil, errors.Is(err, ErrNoNode):
			case errors.Is(err, ErrNotEmpty) && errors.As(err, &failed):
				size += len(failed.Path)
				parents = append(parents, failed.Path)
			default:
				return nil, err
			}
		}
	}
	return parents, nil
}
