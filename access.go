package zklock

import (
	"errors"
	"slices"
	"strings"

	"github.com/zklock/zklock/internal/queue"
	"github.com/zklock/zklock/zk"
)

// An access is what a parent's access control list permits, for the znodes that a
// client with credentials makes below it. A nil *access permits everything to
// everybody.
type access struct {
	list []zk.ACL
}

// maxACL bounds the size in bytes of a list that is copied to entries. A longer one
// counts as one that may not be read.
const maxACL = 16 << 10

// accessOf returns what the answer to a read of a list permits. A list that may not be
// read permits nothing, so that what is made below it is the creator's alone.
func accessOf(list []zk.ACL, err error) queue.Access {
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
	case err != nil || size > maxACL:
		return &access{}
	}
	return &access{list: slices.DeleteFunc(list, masked)}
}

// masked reports whether the servers have hidden whom an entry of a list is for, as
// they do where the client may not change the list.
func masked(a zk.ACL) bool { return a.Scheme == "digest" && strings.HasSuffix(a.ID, ":x") }

// What a znode is made for.
type purpose uint8

const (
	entryNode purpose = iota // an entry or a record
	lockNode                 // a lock's znode, or one above it
)

// listOf returns the list that a znode is made with. The client's own identities get
// all rights to it, and whoever may make a lock's znode may use the lock, which takes
// the right to delete the own entry in it.
func (c *Client) listOf(from queue.Access, what purpose) []zk.ACL {
	a, ok := from.(*access)
	if !ok {
		return c.opts.ACL
	}
	list := slices.Clone(a.list)
	if what == lockNode {
		const makes = zk.PermCreate | zk.PermRead
		for i := range list {
			if list[i].Perms&makes == makes {
				list[i].Perms |= zk.PermDelete
			}
		}
	}
	if !c.unproven.Load() || len(list) == 0 {
		list = append(list, zk.CreatorACL()...)
	}
	return list
}

// inherits reports whether a request makes znodes with a parent's list, and the list
// has others in it than the creator. Servers that know none of the client's identities,
// as where they do not ask for its certificate, refuse only to name the creator.
func inherits(r *queue.Request) bool {
	from := r.Access
	for _, n := range r.Creates {
		from = n.Access
	}
	a, ok := from.(*access)
	return ok && len(a.list) > 0
}
