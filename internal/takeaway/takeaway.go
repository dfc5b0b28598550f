// Package takeaway takes locks away from those who hold them: the hold with one
// fencing token and no other, whatever happens meanwhile.
//
// ZooKeeper compares the version of a znode's data when it deletes, and not its
// czxid, which the token is. A znode with an id in its name is the only one that
// ever has that name, so that to compare and then to delete is one thing. Of other
// names, as a single znode's, the version is first driven up in a transaction whose
// answer has the czxid: a znode that somebody makes anew under the name begins at 0
// again and is not deleted.
package takeaway

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
)

// ErrOther says that no hold has the token: the lock has another holder by now, or
// none, or whoever has the token is still waiting. Nothing was deleted.
var ErrOther = errors.New("nobody holds it with this token")

const (
	// rounds bounds how often it begins anew where others write to the znodes.
	rounds = 8
	// leap is by how much a version is driven up: more than others write to a znode
	// between two requests.
	leap = 7
	// large is more data than are written leap times.
	large = 64 << 10
)

// Break deletes the znodes of the hold with this token, all or none, and returns
// its entries: several for permits that were taken at once, or in the mixed layout.
// entries are the lock's, as [zklock.Client.Inspect] returns them. It needs the
// right to delete below the lock's path; where a name is not unique, that to write
// the znode makes sure that nobody else's is met, and without it the version is all
// that is compared.
//
// An error that wraps zk.ErrConnectionLost, or ctx's, says that the znodes may be
// deleted or may yet be.
func Break(ctx context.Context, z *zk.Client, entries []zklock.Entry, token int64) ([]zklock.Entry, error) {
	held := Holds(entries, token)
	if len(held) == 0 {
		return nil, ErrOther
	}
	for range rounds {
		err := once(ctx, z, held)
		switch {
		case err == nil:
			return held, nil
		case errors.Is(err, zk.ErrNoNode):
			return nil, fmt.Errorf("%w: it left a moment ago", ErrOther)
		case !errors.Is(err, zk.ErrBadVersion):
			return nil, err
		}
	}
	return nil, fmt.Errorf("others write to %s without end: %w", held[0].Node, zk.ErrBadVersion)
}

// once deletes the entries' znodes, unless one of them is written to meanwhile.
func once(ctx context.Context, z *zk.Client, held []zklock.Entry) error {
	deletes := make([]zk.Op, 0, len(held))
	for _, e := range held {
		op, err := comparing(ctx, z, e)
		if err != nil {
			return err
		}
		deletes = append(deletes, op)
	}
	_, err := z.Multi(ctx, deletes...)
	return err
}

// Holds are the entries of the hold with the token, which Break would delete. A znode whose czxid it is comes
// before one whose data say so, as those of a downgraded writer do: anybody can
// write data.
func Holds(entries []zklock.Entry, token int64) []zklock.Entry {
	var own, claimed []zklock.Entry
	for _, e := range entries {
		switch {
		case !e.Holder || e.Token != token || e.Session == 0:
		case claims(e):
			claimed = append(claimed, e)
		default:
			own = append(own, e)
		}
	}
	if len(own) > 0 {
		return own
	}
	return claimed
}

// claims reports whether an entry has its token by what its data say.
func claims(e zklock.Entry) bool { return e.Mode == zklock.Shared && e.Owner.Token == e.Token }

// comparing returns the operation that deletes an entry's znode and no other.
func comparing(ctx context.Context, z *zk.Client, e zklock.Entry) (zk.Op, error) {
	data, stat, err := z.Get(ctx, e.Node)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return zk.Op{}, fmt.Errorf("%w: it left a moment ago", ErrOther)
	case err != nil:
		return zk.Op{}, err
	case !same(e, stat):
		return zk.Op{}, ErrOther
	case named(e):
		return zk.DeleteOp(e.Node, -1), nil
	}
	return pinned(ctx, z, e, data, stat.Version)
}

// same reports whether a znode is the one that an entry was read from.
func same(e zklock.Entry, stat zk.Stat) bool {
	if stat.EphemeralOwner != e.Session {
		return false
	}
	return stat.Czxid == e.Token || claims(e) && stat.Czxid > e.Token
}

// pinned drives the version of an entry's znode up and returns the operation that
// deletes it at that version. With zk.ErrBadVersion somebody has written to it, so
// that it is to be looked at again: the version that it had may be another's by now.
func pinned(ctx context.Context, z *zk.Client, e zklock.Entry, data []byte, version int32) (zk.Op, error) {
	sets := make([]zk.Op, leap)
	if len(data) > large {
		sets = sets[:1] // all of them would not fit into one request
	}
	for i := range sets {
		sets[i] = zk.SetOp(e.Node, data, version+int32(i))
	}
	results, err := z.Multi(ctx, sets...)
	switch {
	case errors.Is(err, zk.ErrNoAuth):
		return zk.DeleteOp(e.Node, version), nil
	case errors.Is(err, zk.ErrNoNode):
		return zk.Op{}, fmt.Errorf("%w: it left a moment ago", ErrOther)
	case err != nil:
		return zk.Op{}, err
	}
	last := results[len(sets)-1].Stat
	if !same(e, last) {
		return zk.Op{}, ErrOther
	}
	return zk.DeleteOp(e.Node, last.Version), nil
}

// There asks a quorum whether the znodes that entries were read from are all there. Of
// names that are not unique it then reads whose the znodes are by now: another may have
// come to the name.
func There(ctx context.Context, z *zk.Client, entries []zklock.Entry) (bool, error) {
	checks := make([]zk.Op, 0, len(entries))
	for _, e := range entries {
		checks = append(checks, zk.CheckOp(e.Node, -1))
	}
	_, err := z.Multi(ctx, checks...)
	for _, e := range entries {
		if err != nil || named(e) {
			continue
		}
		// The session has seen the check's transaction, and reads nothing older.
		var stat zk.Stat
		if _, stat, err = z.Get(ctx, e.Node); err == nil && !same(e, stat) {
			return false, nil
		}
	}
	if errors.Is(err, zk.ErrNoNode) {
		return false, nil
	}
	return err == nil, err
}

// named reports whether an entry's name is no other's, ever. The lock's own name is that
// of all its holders.
func named(e zklock.Entry) bool { return unique(strings.TrimPrefix(e.Name, path.Base(e.Path))) }

// unique reports whether a name has an id of 32 hexadecimal digits, with hyphens or
// without, which no other attempt has.
func unique(name string) bool {
	const enough = 32
	run := 0
	for _, c := range name {
		switch {
		case c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F':
			run++
		case c == '-':
		default:
			run = 0
		}
		if run == enough {
			return true
		}
	}
	return false
}
