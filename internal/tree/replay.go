package tree

import (
	"fmt"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// Replay applies a record of Out.Records to the state it was made from. After
// all records the state is what it was when the last one was made, but for
// connections and their watches. The record is not kept.
//
// Every record is checked against the state before it changes anything. Errors
// wrap [ErrCorrupt]; after one the Tree must not be used.
func (t *Tree) Replay(record []byte) error {
	r := jute.NewReader(nil)
	if len(record) == 0 {
		return fmt.Errorf("%w: an empty record", ErrCorrupt)
	}
	if err := knows("record", record[0], recordVersion); err != nil {
		return err
	}
	r.Reset(record[1:])
	zxid, wall := r.Int64(), r.Int64()
	var x txn
	decodeOp(r, &x, false)
	if err := r.Finish(); err != nil {
		return fmt.Errorf("%w: record: %w", ErrCorrupt, err)
	}
	// A gap means a record that was lost, a repetition one that is in the
	// snapshot already: neither may pass for the truth.
	want := t.zxid + 1
	if x.op == opSessionTimeout {
		want = t.zxid
	}
	if zxid != want && !t.fresh {
		return fmt.Errorf("%w: record of transaction %#x after %#x", ErrCorrupt, zxid, t.zxid)
	}
	// The first record of all tells where the ids began: New was told where
	// they would begin now.
	t.zxid, t.fresh = zxid, false
	var out Out // stays empty: nobody is connected
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

// knows says what is wrong with a version of a format. The log's checksums were
// right, so a version that is higher is no damage but a newer program's.
func knows(what string, version, known byte) error {
	switch {
	case version > known:
		return fmt.Errorf("%w: %s of version %d, this program knows %d", ErrVersion, what, version, known)
	case version < known:
		return fmt.Errorf("%w: %s of version %d, which never was", ErrCorrupt, what, version)
	}
	return nil
}

// replayOne applies one operation if it fits. Each operation of a multi is tried
// against the state that those before it left.
func (t *Tree) replayOne(x *txn, zxid, wall int64, out *Out) error {
	if what := t.misfit(x); what != "" {
		return fmt.Errorf("%w: transaction %#x, %s: %s", ErrCorrupt, zxid, x.op, what)
	}
	t.apply(x, zxid, wall, out)
	return nil
}

// misfit says why an operation can't be applied to the state, "" if it can.
// Paths and identities stay out of it: errors end up in logs. It asks for all
// that apply takes for granted, and for nothing more.
func (t *Tree) misfit(x *txn) string {
	switch x.op {
	case wire.OpCreate:
		return t.misfitCreate(x)
	case wire.OpDelete:
		n := t.nodes.get(x.path)
		if n == nil || n.rare().children > 0 || isSpecial(x.path) {
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
		if n := t.nodes.get(x.path); n == nil || x.version < n.rare().creates {
			return "sequence can't jump"
		}
	}
	return ""
}

// misfitCreate is misfit for a create, also of a snapshot's node. A record says
// what happened, so permissions and versions, which decided whether it should,
// are of no interest here.
func (t *Tree) misfitCreate(x *txn) string {
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
