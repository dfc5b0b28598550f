package bench

import (
	"context"
	"errors"

	"github.com/zklock/zklock/zk"
)

// node is the first lock of every textbook ("Simple Locks" in ZooKeeper's own paper). The
// client that creates the ephemeral znode holds the lock. All other clients read it with a
// watch, and race to create it when it is deleted. There is no order.
type node struct {
	client  *zk.Client
	path    string
	granted func(error)
	// armed says that the watch is set and has not fired. Only callbacks use it.
	armed bool
}

// joinNode returns a contender for the znode below path.
func joinNode(c *zk.Client, path string) contender {
	return &node{client: c, path: path + "/lock"}
}

// enter does nothing, because there is no queue.
func (n *node) enter(_ context.Context, _ bool, granted func(error)) error {
	n.granted = granted
	return nil
}

// wait tries to create the znode, and watches it if another client was faster.
func (n *node) wait() {
	n.client.Go(zk.CreateOp(n.path, []byte{}, nil, zk.ModeEphemeral), func(r zk.Result) {
		if errors.Is(r.Err, zk.ErrNodeExists) {
			n.watch()
			return
		}
		n.granted(r.Err)
	})
}

// watch reads the znode with a watch. If the znode does not exist, a read sets no watch. An
// exists would set one, and the next holder's create would fire it.
func (n *node) watch() {
	n.client.Go(zk.GetOp(n.path, true), func(r zk.Result) {
		switch {
		case r.Err == nil:
			n.armed = true
		case errors.Is(r.Err, zk.ErrNoNode):
			n.wait()
		default:
			n.granted(r.Err)
		}
	})
}

// event starts the race again. The event may be that of another contender in the same
// session, so armed must be set.
func (n *node) event(e zk.Event) {
	if n.armed && e.Path == n.path && e.Type == zk.EventNodeDeleted {
		n.armed = false
		n.wait()
	}
}

// leave deletes the znode, which wakes all waiters.
func (n *node) leave(ctx context.Context) error { return n.client.Delete(ctx, n.path, -1) }

func (n *node) stop() {}

func (n *node) close() {}
