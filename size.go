package zklock

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/zklock/zklock/internal/queue"
	"github.com/zklock/zklock/zk"
)

// ResizableSemaphore returns the semaphore with this name whose number of permits the
// servers store: [Client.Resize] sets it, also while clients hold permits. If no number is
// set, or if it is smaller than what the caller wants to hold, an acquire fails with ErrSize.
//
// A larger number grants waiting acquires at once. A smaller number revokes no hold: acquires
// wait until enough permits are released. In both cases an acquire is granted only if it
// finds at most that many permits, its own included, and it reads the number after it
// counts the permits. So no acquire that counts after the change uses the old number.
//
// A client from [New], or with servers before ZooKeeper 3.5, that has waited for more than 64 such
// semaphores in one session may learn of a larger number up to a second later.
//
// It is the same semaphore as [Client.Semaphore] and Curator's InterProcessSemaphoreV2 with
// this name. A client that uses a number of its own keeps to that number. If it differs, a
// Semaphore fails with ErrPermits once it sees that other clients hold permits by the stored
// number. Curator follows the stored number through a SharedCount at the path of the
// semaphore with the suffix "/size", but can use the old number until it is notified.
//
// Do not use the name of a semaphore with the suffix "/size" for a lock.
func (c *Client) ResizableSemaphore(name string) *Lock { return c.semaphore(name, 0) }

// Resize sets the number of permits of the semaphore with this name, from 1 to 1048576; see
// [Client.ResizableSemaphore]. It may be called at any time, by any client that has the
// permission to write there.
//
// The number is stored in a persistent znode at the path of the semaphore with the suffix
// "/size", in the format of Curator's SharedCount. The znode remains until a program deletes
// it. A new one gets the ACL [Options].ACL, or if that is nil the ACL of the znode above it.
//
// If the error says that the connection was lost, the number may have been set: call Resize
// again.
func (c *Client) Resize(ctx context.Context, name string, n int) error {
	fail := func(err error) error {
		at := name
		if path, invalid := parseName(name, c.opts.Layout); invalid == nil {
			at = path
		}
		return &Error{Op: "resize", Path: at, Err: publicError(err)}
	}
	l := c.Semaphore(name, n)
	if err := l.validate(); err != nil {
		return fail(err)
	}
	if err := c.writeSize(ctx, l.path, queue.AppendSize(nil, n)); err != nil {
		return fail(err)
	}
	// Clients with a number of their own compare it with this one.
	err := c.overwrite(ctx, queue.LeasesPath(l.path), strconv.AppendInt(nil, int64(n), 10))
	if err != nil && !errors.Is(err, zk.ErrNoNode) && !errors.Is(err, zk.ErrNoAuth) {
		return fail(err)
	}
	return nil
}

// maxSizeAttempts bounds how often a write is repeated: another client changes the znode in
// between only rarely.
const maxSizeAttempts = 8

// writeSize writes the stored size of a semaphore, and creates its znode if there is none.
func (c *Client) writeSize(ctx context.Context, path string, data []byte) (err error) {
	for range maxSizeAttempts {
		if err = c.overwrite(ctx, queue.SizePath(path), data); !errors.Is(err, zk.ErrNoNode) {
			return err
		}
		if err = c.createSize(ctx, path, data); !errors.Is(err, zk.ErrNodeExists) && !errors.Is(err, zk.ErrNoNode) {
			return err
		}
	}
	return err
}

// overwrite writes the data of a znode, whatever they are. The request names their version, so
// that the servers do not accept it after a later one.
func (c *Client) overwrite(ctx context.Context, path string, data []byte) error {
	for range maxSizeAttempts {
		stat, _, err := c.zk.Exists(ctx, path) // the write finds that a znode does not exist
		if err != nil {
			return err
		}
		if _, err = c.zk.Set(ctx, path, data, stat.Version); !errors.Is(err, zk.ErrBadVersion) {
			return err
		}
	}
	return zk.ErrBadVersion
}

// createSize creates the znode of the stored size, and those above it that do not exist.
func (c *Client) createSize(ctx context.Context, path string, data []byte) error {
	access, err := c.accessAbove(ctx, path)
	if err != nil {
		return err
	}
	var failed error // of the first znode that could not be created
	for i := 1; i <= len(path); i++ {
		if i < len(path) && path[i] != '/' {
			continue
		}
		err := c.createParent(ctx, queue.Request{Kind: queue.Make, Path: path[:i], Access: access, Above: i < len(path)})
		if failed == nil && !errors.Is(err, zk.ErrNodeExists) {
			failed = err
		}
	}
	// Another client may have created the znode of the semaphore meanwhile, with another ACL.
	if access, err = c.accessAbove(ctx, path); err != nil {
		return err
	}
	err = c.doOne(ctx, zk.PlainCreateOp(queue.SizePath(path), data, c.aclFor(access, lockNode), zk.ModePersistent))
	if failed != nil && errors.Is(err, zk.ErrNoNode) {
		return failed
	}
	return err
}

// createParent creates a znode above the stored size: a container, if the options allow that
// and the servers have containers.
func (c *Client) createParent(ctx context.Context, r queue.Request) error {
	r.Container = !c.opts.PersistentParents && !c.opts.Layout.needsPersistentParents()
	err := c.doOne(ctx, c.toOp(&r))
	if errors.Is(err, zk.ErrUnimplemented) {
		r.Container = false
		err = c.doOne(ctx, c.toOp(&r))
	}
	return err
}

// doOne sends an operation, and returns its error.
func (c *Client) doOne(ctx context.Context, op zk.Op) error {
	results, err := c.doAll(ctx, op)
	if err != nil {
		return err
	}
	return results[0].Err
}

// accessAbove returns the access control of the znode at path, or of its nearest ancestor
// that exists. With Options.ACL, it decides whether a parent of several locks becomes open.
func (c *Client) accessAbove(ctx context.Context, path string) (queue.Access, error) {
	if !c.zk.Authenticates() {
		return nil, nil
	}
	for {
		list, _, err := c.zk.GetACL(ctx, path)
		switch {
		case err == nil || errors.Is(err, zk.ErrNoAuth):
			return newParentACL(list, err), nil
		case !errors.Is(err, zk.ErrNoNode) || path == "/":
			return nil, err
		}
		path = path[:max(1, strings.LastIndexByte(path, '/'))]
	}
}

// sizeError returns ErrSize with the reason that the core gives.
func sizeError(err error) error {
	return fmt.Errorf("%w%s", ErrSize, strings.TrimPrefix(err.Error(), queue.ErrSize.Error()))
}
