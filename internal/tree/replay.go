package tree

import (
	"errors"
	"fmt"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// Replay applies a record of Out.Records to the state in which it was created. After
// all records, the state equals that after the last one was created, except for
// connections and their watches. Replay does not keep the record.
//
// Every record is checked against the state before it changes anything. Errors wrap
// [ErrCorrupt] or [ErrVersion]; after an error the Tree must not be used.
func (t *Tree) Replay(record []byte) error {
	r := jute.NewReader(nil)
	if len(record) == 0 {
		return fmt.Errorf("%w: an empty record", ErrCorrupt)
	}
	if err := checkVersion("record", record[0], endSessionVersion); err != nil {
		return err
	}
	r.Reset(record[1:])
	zxid, wall := r.Int64(), r.Int64()
	var x txn
	decodeOp(r, &x, false)
	if err := r.Finish(); err != nil {
		return fmt.Errorf("%w: record: %w", ErrCorrupt, err)
	}
	// A gap means that a record was lost, and a repetition that the record is in the
	// snapshot already. Both are errors.
	want := t.zxid + 1
	if x.op == opSessionTimeout {
		want = t.zxid
	}
	if zxid != want && !t.fresh {
		return fmt.Errorf("%w: record of transaction %#x after %#x", ErrCorrupt, zxid, t.zxid)
	}
	// The first record determines where the IDs began, because New was called with
	// the present starting point.
	t.zxid, t.fresh = zxid, false
	var out Out // stays empty: there are no connections
	defer t.storeUsage()
	if x.op != wire.OpMulti {
		return t.replayOne(&x, zxid, wall, &out)
	}
	for i := range x.subs {
		if err := t.replayOne(&x.subs[i], zxid, wall, &out); err != nil {
			return err
		}
	}
	return nil
}

// checkVersion returns an error for a version of a format that is 0 or above known. The log's
// checksums were correct, so a higher version is not damage but was written by a
// newer program.
func checkVersion(what string, version, known byte) error {
	switch {
	case version > known:
		return fmt.Errorf("%w: %s of version %d, this program knows %d", ErrVersion, what, version, known)
	case version == 0:
		return fmt.Errorf("%w: %s of version %d, which never was", ErrCorrupt, what, version)
	}
	return nil
}

// replayOne applies one operation if it is consistent with the state. Each operation
// of a multi is checked against the state after those before it.
func (t *Tree) replayOne(x *txn, zxid, wall int64, out *Out) error {
	if what := t.conflict(x); what != "" {
		return fmt.Errorf("%w: transaction %#x, %s: %s", ErrCorrupt, zxid, x.op, what)
	}
	t.apply(x, zxid, wall, out)
	return nil
}

// conflict returns why an operation cannot be applied to the state, or "". The text
// has no paths and identities, because errors appear in logs. It checks exactly the
// preconditions of apply.
func (t *Tree) conflict(x *txn) string {
	switch x.op {
	case wire.OpCreate:
		return t.createConflict(x)
	case wire.OpDelete:
		n := t.nodes.get(x.path)
		if n == nil || n.extraOrNew().children > 0 || isSpecial(x.path) {
			return "node can't be deleted"
		}
	case wire.OpSetData, wire.OpSetACL:
		if t.nodes.get(x.path) == nil {
			return "no such node"
		}
	case wire.OpCreateSession:
		if x.session <= 0 || t.sessions[x.session] != nil || x.timeout < 1 || len(x.data) != passwordLen {
			return "session can't be made"
		}
	case wire.OpCloseSession, opSessionTimeout, opEndSession:
		if t.sessions[x.session] == nil {
			return "no such session"
		}
		if x.op == opSessionTimeout && x.timeout < 1 {
			return "timeout below 1 ms"
		}
	case opJumpSequence:
		if n := t.nodes.get(x.path); n == nil || x.version < n.extraOrNew().creates {
			return "sequence can't jump"
		}
	}
	return ""
}

// createConflict is conflict for a create, and for a snapshot's node. Permissions and
// versions are not checked, because a record is the result of that decision.
func (t *Tree) createConflict(x *txn) string {
	if !validPath(x.path) || isSpecial(x.path) {
		return "path that can't be created"
	}
	if t.nodes.get(x.path) != nil {
		return "node exists"
	}
	parentPath, _ := parentOf(x.path)
	p := t.lookup(parentPath)
	if p == nil || kindOf(p.owner) == ephemeral {
		return "no parent"
	}
	if kindOf(x.owner) == ephemeral && t.sessions[x.owner] == nil {
		return "no session to own it"
	}
	return ""
}

// ErrCorrupt is wrapped by the errors of Replay and Restore if the bytes were not
// written by a Tree, or are inconsistent with the state. The Tree must not be used
// any more. Start from another snapshot, or from the records alone.
var ErrCorrupt = errors.New("tree: corrupt record or snapshot, recover from another copy")

// ErrVersion is wrapped by the errors of Replay and Restore if a newer version of
// this program wrote the bytes. Use that version or a newer one.
var ErrVersion = errors.New("tree: a newer version of this program wrote this, use that one")
