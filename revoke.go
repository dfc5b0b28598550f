package zklock

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/zklock/zklock/internal/queue"
	"github.com/zklock/zklock/zk"
)

// Revoked returns a channel that is closed when somebody asks for the lock back:
// by [Lock.Revoke], Curator's Revoker, or ZooKeeper's recipe. It is a wish: the
// holder should finish what it does and Release; nothing happens if it does not.
// Each call returns the same channel, which is never closed if nobody asks.
//
// The first call makes the client watch the hold's znodes.
func (h *Hold) Revoked() (asked <-chan struct{}) {
	h.look(func(core *queue.Core, now time.Duration) {
		p := h.possession
		if p.revoked == nil {
			p.revoked = make(chan struct{})
			if !p.over {
				core.Watch(now, p.id)
			}
		}
		asked = p.revoked
	})
	return asked
}

// revoke tells a possession that somebody asked. The mutex is held.
func (c *Client) revoke(p *possession) {
	if !p.asked && p.revoked != nil {
		p.asked = true
		c.closeLater(p.revoked)
	}
}

// Revoke asks whoever holds the lock to give it back, and returns whom it asked:
// the holders of this moment, with those who had been asked before. Holders of
// this package see it by [Hold.Revoked]; Curator's must have made their mutex
// revocable; kazoo's do not look. It needs the right to set the data of the
// holders' znodes; where that is missing the others are asked all the same. With
// an error come those who were asked.
//
// In the znodes of other libraries Curator's word takes the place of their data:
// don't ask those who need them, such as participants of a LeaderLatch, which have
// their ids there.
func (l *Lock) Revoke(ctx context.Context) ([]Entry, error) {
	return l.revoke(ctx, func(Entry) bool { return true })
}

// RevokeToken is [Lock.Revoke] for the one holder with this fencing token, and nobody
// beside it: it asks nobody, and returns no entries and no error, if by now no holder
// has it. One hold of several permits has several entries. Where a znode's name is not
// unique, as a node lock's, the next holder may be asked who comes in the moment between
// the look and the wish.
func (l *Lock) RevokeToken(ctx context.Context, token int64) ([]Entry, error) {
	return l.revoke(ctx, func(e Entry) bool { return e.Token == token })
}

// revoke asks those of the holders that are meant.
func (l *Lock) revoke(ctx context.Context, meant func(Entry) bool) ([]Entry, error) {
	found, err := l.find(ctx)
	if err != nil {
		return nil, &Error{Op: "revoke", Path: l.Path(), Err: public(err)}
	}
	var asked []Entry
	var refused error // the first one
	for _, f := range found {
		if !f.Holder || !meant(f.Entry) {
			continue
		}
		there, err := false, f.unread
		if err == nil {
			there, err = l.client.askBack(ctx, f)
		}
		switch {
		case errors.Is(err, zk.ErrNoAuth):
			refused = cmp.Or(refused, err)
		case err != nil:
			return asked, &Error{Op: "revoke", Path: l.path, Err: public(err)}
		case there:
			f.Revoked = true
			asked = append(asked, f.Entry)
		}
	}
	if refused != nil {
		return asked, &Error{Op: "revoke", Path: l.path, Err: refused}
	}
	return asked, nil
}

// askBack writes the wish into one znode, unless it is there, and reports false
// if the znode is gone. The data may change under it, by another's wish, and a
// wish whose answer was lost may have been written: it looks again. Where a name is not
// unique another may have come to it, who is not meant.
func (c *Client) askBack(ctx context.Context, f finding) (there bool, err error) {
	const rounds = 8
	known := true // what the data are
	var why error // the last wish failed
	for range rounds {
		if known && queue.Asked(f.data) {
			return true, nil
		}
		if known {
			var stat zk.Stat
			stat, err = c.zk.Set(ctx, f.Node, withRevocation(f.data), f.version)
			if err == nil {
				return stat.Czxid == f.czxid, nil
			}
			why = err
		} else {
			var stat zk.Stat
			f.data, stat, err = c.zk.Get(ctx, f.Node)
			f.version = stat.Version
			if err == nil && stat.Czxid != f.czxid {
				return false, nil
			}
		}
		known = !known && err == nil
		switch {
		case errors.Is(err, zk.ErrNoNode):
			return false, nil
		case err != nil && !errors.Is(err, zk.ErrBadVersion) && !errors.Is(err, zk.ErrConnectionLost):
			return false, err
		}
	}
	return false, why
}

// withRevocation returns a znode's data with the wish in it: before the rest of
// what this package wrote, which stays to be read, else Curator's word.
func withRevocation(data []byte) []byte {
	if _, ok := ours(data); !ok {
		return []byte(queue.CuratorWish)
	}
	rest := bytes.TrimLeft(data[1:], " \t\r\n")
	wish := []byte(queue.OwnWish)
	if rest[0] != '}' {
		wish = append(wish, ',')
	}
	return append(wish, rest...)
}
