package inspect

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/internal/legible"
	"github.com/zklock/zklock/zk"
)

// ErrNotHeld means that no hold has the fencing token: the hold has ended, or its entry
// still waits. Or the data of several holds claim the token. Nothing was deleted.
var ErrNotHeld = errors.New("no hold has this token")

const (
	// maxAttempts limits how often Break starts again because other clients write to the
	// znodes.
	maxAttempts = 8
	// versionSteps is how far deletePinned raises a version: more than other clients write
	// to a znode between two requests.
	versionSteps = 7
	// largeData is the size above which deletePinned writes the data only once.
	largeData = 64 << 10
)

// Break deletes the znodes of the hold with this fencing token, all or none, and returns
// its entries. A hold of several permits, or in the mixed layout, has several entries, which one
// transaction created. Pass the entries of the lock as [zklock.Client.Inspect] returns them. If no
// hold has the token, or several do because their data claim it, the error wraps [ErrNotHeld]. If
// an entry that could not be read may have it, the error wraps [zk.ErrNoAuth].
//
// ZooKeeper compares the version of the data when it deletes a znode, but not the czxid,
// which is the token. So Break distinguishes two cases. A name with an ID of 32 digits is
// never used again: Break compares, and then deletes. Any other name, as that of a node
// lock, may be created again in between. For it, Break first raises the version in a
// transaction, whose response has the czxid. A znode that another client creates under the
// name starts at version 0, and the delete does not apply to it.
//
// Break needs the permission to delete below the lock's path. For the second case, it also
// needs the permission to write; without it, Break relies on the version alone.
//
// If the error wraps zk.ErrConnectionLost or ctx's error, the znodes may or may not be
// deleted.
func Break(ctx context.Context, z *zk.Client, entries []zklock.Entry, token int64) ([]zklock.Entry, error) {
	held := holdEntries(entries, token)
	if len(held) == 0 {
		return nil, notHeld(entries, token)
	}
	for _, e := range held[1:] {
		if e.Czxid != held[0].Czxid {
			const format = "%w: the data of several holds claim it; break each by its czxid, such as %d"
			return nil, fmt.Errorf(format, ErrNotHeld, e.Czxid)
		}
	}
	for range maxAttempts {
		err := breakOnce(ctx, z, held)
		switch {
		case err == nil:
			return held, nil
		case errors.Is(err, zk.ErrNoNode):
			return nil, fmt.Errorf("%w: it left a moment ago", ErrNotHeld)
		case !errors.Is(err, zk.ErrBadVersion):
			return nil, err
		}
	}
	return nil, fmt.Errorf("other clients keep writing to %s: %w", legible.Path(held[0].Node), zk.ErrBadVersion)
}

// breakOnce deletes the znodes of the entries, unless another client writes to one of them.
func breakOnce(ctx context.Context, z *zk.Client, held []zklock.Entry) error {
	deletes := make([]zk.Op, 0, len(held))
	for _, e := range held {
		op, err := deleteOf(ctx, z, e)
		if err != nil {
			return err
		}
		deletes = append(deletes, op)
	}
	_, err := z.Multi(ctx, deletes...)
	return err
}

// holdEntries returns the entries of the hold with the token.
func holdEntries(entries []zklock.Entry, token int64) []zklock.Entry {
	var held []zklock.Entry
	for _, e := range entries {
		if e.Holder && hasToken(e, token) && e.Session != 0 {
			held = append(held, e)
		}
	}
	return held
}

// notHeld returns the error for a token that is not that of a hold with a session. Only a
// person can know whether the client of an entry without a session still exists.
func notHeld(entries []zklock.Entry, token int64) error {
	hidden := ""
	for _, e := range entries {
		switch {
		case e.Holder && hasToken(e, token) && e.Session == 0:
			return fmt.Errorf("%w: %s belongs to no session; delete it if its client no longer needs it", ErrNotHeld, legible.Path(e.Node))
		case hasToken(e, token) && (e.Holder || e.Czxid == token):
			return ErrNotHeld // the entry with the token waits, or is not the one that the caller means
		case hidden == "" && hidesToken(e):
			hidden = e.Node
		}
	}
	if hidden != "" {
		return errHidden(token, hidden)
	}
	return ErrNotHeld
}

// hasToken reports whether an entry that holds can belong to the hold with this fencing token.
// Every client that may write to the entry can change the token in its data, but not its czxid.
func hasToken(e zklock.Entry, token int64) bool {
	return token != 0 && (e.Token == token || e.Czxid == token)
}

// deleteOf returns the operation that deletes an entry's znode and no other.
func deleteOf(ctx context.Context, z *zk.Client, e zklock.Entry) (zk.Op, error) {
	data, stat, err := z.Get(ctx, e.Node)
	switch {
	case err != nil:
		return zk.Op{}, err
	case !isSameNode(e, stat):
		return zk.Op{}, ErrNotHeld
	case hasUniqueName(e):
		return zk.DeleteOp(e.Node, -1), nil
	}
	return deletePinned(ctx, z, e, data, stat.Version)
}

// isSameNode reports whether a znode is the one that an entry was read from.
func isSameNode(e zklock.Entry, stat zk.Stat) bool {
	return stat.EphemeralOwner == e.Session && stat.Czxid == e.Czxid
}

// deletePinned raises the version of an entry's znode, and returns the operation that
// deletes it at that version. With zk.ErrBadVersion, another client has written to it. The
// caller must then read the znode again, because the version may belong to a new znode.
func deletePinned(ctx context.Context, z *zk.Client, e zklock.Entry, data []byte, version int32) (zk.Op, error) {
	sets := make([]zk.Op, versionSteps)
	if len(data) > largeData {
		sets = sets[:1] // all of them would not fit in one request
	}
	for i := range sets {
		sets[i] = zk.SetOp(e.Node, data, version+int32(i))
	}
	results, err := z.Multi(ctx, sets...)
	switch {
	case errors.Is(err, zk.ErrNoAuth):
		return zk.DeleteOp(e.Node, version), nil
	case err != nil:
		return zk.Op{}, err
	}
	last := results[len(sets)-1].Stat
	if !isSameNode(e, last) {
		return zk.Op{}, ErrNotHeld
	}
	return zk.DeleteOp(e.Node, last.Version), nil
}

// Exist asks a quorum whether the znodes of all entries still exist. For names that may be
// used again, it also checks that the znodes are the same.
func Exist(ctx context.Context, z *zk.Client, entries []zklock.Entry) (bool, error) {
	checks := make([]zk.Op, 0, len(entries))
	for _, e := range entries {
		checks = append(checks, zk.CheckOp(e.Node, -1))
	}
	_, err := z.Multi(ctx, checks...)
	for _, e := range entries {
		if err != nil || hasUniqueName(e) {
			continue
		}
		// The session has seen the check's transaction, so this read is not older.
		var stat zk.Stat
		if _, stat, err = z.Get(ctx, e.Node); err == nil && !isSameNode(e, stat) {
			return false, nil
		}
	}
	if errors.Is(err, zk.ErrNoNode) {
		return false, nil
	}
	return err == nil, err
}

// hasUniqueName reports whether no other znode ever has the entry's name. All holders of a
// node lock share the lock's name.
func hasUniqueName(e zklock.Entry) bool { return hasID(strings.TrimPrefix(e.Name, path.Base(e.Path))) }

// hasID reports whether a name has an ID of 32 hexadecimal digits, with or without hyphens.
func hasID(name string) bool {
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
