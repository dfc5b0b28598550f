package kinds

import (
	"context"
	"errors"
	"net"
	"path"
	"regexp"

	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// parent is how the parents of locks' entries are called in these tests.
var parent = regexp.MustCompile(`^([a-z]|locks|leases)(-held)?$`)

// Left are the znodes below a path that are no parents: what locks have left
// behind, or have not removed yet.
func Left(ctx context.Context, c *zk.Client, root string) ([]string, error) {
	children, _, err := c.Children(ctx, root)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var left []string
	for _, name := range children {
		child := path.Join(root, name)
		stat, there, err := c.Exists(ctx, child)
		if err != nil {
			return nil, err
		}
		if !there {
			continue
		}
		if stat.EphemeralOwner != 0 && !container(stat) || !parent.MatchString(name) {
			left = append(left, child)
		}
		below, err := Left(ctx, c, child)
		if err != nil {
			return nil, err
		}
		left = append(left, below...)
	}
	return left, nil
}

// container reports whether a znode is a container: servers show that by an
// owner that no session has (EphemeralType.CONTAINER_EPHEMERAL_OWNER).
func container(s zk.Stat) bool { return s.EphemeralOwner == -1<<63 }

// past connects to a server past its relay and so past all faults.
func past(srv *zktest.Server) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if server := srv.Server(); server != nil {
			return server.DialContext(ctx, network, addr)
		}
		return nil, net.ErrClosed // it is being restarted
	}
}
