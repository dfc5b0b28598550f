package tree

import "github.com/zklock/zklock/internal/wire"

// opJumpSequence is the transaction by which a node's create counter jumps. It is
// none of ZooKeeper's.
const opJumpSequence wire.OpCode = -13

// JumpSequence makes next the number of the next sequential child of the node at
// path, as if so many had come and gone: what happens near 2^31 can be tested
// without creating as many. It answers ErrNoNode, or ErrBadArguments if the
// counter has passed next: numbers never come twice.
func (t *Tree) JumpSequence(path string, next int32, now Now, out *Out) wire.ErrCode {
	x := txn{op: opJumpSequence, path: path, version: next}
	switch n := t.nodes.get(path); {
	case t.readOnly:
		return wire.ErrNotReadOnly
	case n == nil:
		return wire.ErrNoNode
	case t.misfit(&x) != "":
		return wire.ErrBadArguments
	}
	t.commit(&x, now, out)
	return wire.ErrOK
}
