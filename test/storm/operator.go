package storm

import (
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/zklock/zklock/zk"
)

// operatorWait bounds one of the operator's jobs.
const operatorWait = 2 * time.Minute

// operator is somebody with the right to everything, who reaches the server past
// the proxies.
type operator struct{ client *zk.Client }

// newOperator connects. The caller closes the client.
func newOperator(ctx context.Context, server *Server) (*operator, error) {
	c, err := zk.Dial(ctx, server.Addr, &zk.Options{
		SessionTimeout: 20 * tick, Auth: []zk.Auth{{Scheme: "digest", Data: []byte("operator:storm")}},
	})
	if err != nil {
		return nil, err
	}
	return &operator{client: c}, nil
}

// again does something until the weather lets it: a server that is killed or
// starved ends connections and sessions of its operators as well. Nothing that is
// done here may not be done twice.
func again(ctx context.Context, do func() error) error {
	for {
		err := do()
		if !errors.Is(err, zk.ErrConnectionLost) && !errors.Is(err, zk.ErrSessionExpired) && !errors.Is(err, zk.ErrSessionMoved) {
			return err
		}
		if !rest(ctx, 10*time.Millisecond) {
			return err
		}
	}
}

// parent is how the parents of locks' entries are called.
var parent = regexp.MustCompile(`^([a-z]|locks|leases)(-held)?$`)

// found is a znode that somebody has seen.
type found struct {
	path   string
	stat   zk.Stat
	parent bool
}

// container reports whether a znode is a container: servers show that by an owner
// that no session has (EphemeralType.CONTAINER_EPHEMERAL_OWNER).
func container(s zk.Stat) bool { return s.EphemeralOwner == -1<<63 }

// below are all znodes below a path, those below others after these. What goes
// while it looks is left out.
func (o *operator) below(ctx context.Context, root string) ([]found, error) {
	var all []found
	var children []string
	err := again(ctx, func() (err error) {
		children, _, err = o.client.Children(ctx, root)
		return err
	})
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, name := range children {
		f := found{path: path.Join(root, name)}
		var there bool
		err := again(ctx, func() (err error) {
			f.stat, there, err = o.client.Exists(ctx, f.path)
			return err
		})
		if err != nil {
			return nil, err
		}
		if !there {
			continue
		}
		f.parent = parent.MatchString(name) && (f.stat.EphemeralOwner == 0 || container(f.stat))
		more, err := o.below(ctx, f.path)
		if err != nil {
			return nil, err
		}
		all = append(append(all, f), more...)
	}
	return all, nil
}

// entries are the znodes below a path that are no parents, and parents the others.
func (o *operator) entries(ctx context.Context, root string) (entries, parents []found, err error) {
	all, err := o.below(ctx, root)
	for _, f := range all {
		if f.parent {
			parents = append(parents, f)
		} else {
			entries = append(entries, f)
		}
	}
	return entries, parents, err
}

// remove deletes a znode, and reports whether it was there.
func (o *operator) remove(ctx context.Context, path string) (bool, error) {
	err := again(ctx, func() error { return o.client.Delete(ctx, path, -1) })
	if errors.Is(err, zk.ErrNoNode) {
		return false, nil
	}
	return err == nil, err
}

// removeAll deletes everything below a path, and the path itself if it is to, and
// reports whether anything was there. Who contends makes things anew meanwhile.
func (o *operator) removeAll(ctx context.Context, root string, itself bool) (some bool, err error) {
	for ctx.Err() == nil {
		all, err := o.below(ctx, root)
		if err != nil {
			return some, err
		}
		for i := len(all) - 1; i >= 0; i-- {
			gone, err := o.remove(ctx, all[i].path)
			if err != nil && !errors.Is(err, zk.ErrNotEmpty) {
				return some, err
			}
			some = some || gone
		}
		if !itself {
			return some, nil
		}
		gone, err := o.remove(ctx, root)
		if !errors.Is(err, zk.ErrNotEmpty) {
			return some || gone, err
		}
	}
	return some, ctx.Err()
}

// deny takes the right to change a znode and what is directly below it away from
// everybody, and allow gives it back.
func (o *operator) deny(ctx context.Context, path string) error {
	return o.setACL(ctx, path, append(zk.CreatorACL(), zk.ReadACL()...))
}

func (o *operator) setACL(ctx context.Context, path string, acl []zk.ACL) error {
	return again(ctx, func() error {
		_, err := o.client.SetACL(ctx, path, acl, -1)
		return err
	})
}

func (o *operator) allow(ctx context.Context, path string) error {
	err := o.setACL(ctx, path, zk.OpenACL())
	if errors.Is(err, zk.ErrNoNode) {
		return nil // it was deleted, as empty containers are
	}
	return err
}

// emptied waits until nobody's entries are left below any of the roots, for so long
// at most. What is left then belongs to sessions that live.
func (o *operator) emptied(ctx context.Context, roots []string, wait time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, wait+operatorWait)
	defer cancel()
	for end := time.Now().Add(wait); ; {
		over := time.Now().After(end)
		var left []string
		for _, root := range roots {
			entries, _, err := o.entries(ctx, root)
			if err != nil {
				return err
			}
			for _, f := range entries {
				left = append(left, fmt.Sprintf("%s of session %#x", f.path, f.stat.EphemeralOwner))
			}
		}
		if len(left) == 0 {
			return nil
		}
		if over {
			return fmt.Errorf("%w: %s", errLeft, strings.Join(left, ", "))
		}
		rest(ctx, 20*time.Millisecond)
	}
}

// errLeft says that znodes were left behind.
var errLeft = errors.New("storm: left behind by clients that rest")
