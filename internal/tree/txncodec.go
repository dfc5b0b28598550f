package tree

import (
	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// recordVersion is the first byte of every record except those with opEndSession, which
// have endSessionVersion. A record of another version is refused, because a wrong
// interpretation would lose locks.
const recordVersion = 1

// endSessionVersion is the version of records with opEndSession, and of snapshots with a
// session that is ending. Programs that do not know these refuse them as newer. Development
// builds wrote them with version 1, which can still be read.
const endSessionVersion = 2

// appendTxn appends a transaction as a record: version, ID, wall clock in ms, and the
// changes.
func appendTxn(b []byte, zxid, wall int64, x *txn) []byte {
	version := byte(recordVersion)
	if x.op == opEndSession {
		version = endSessionVersion
	}
	b = append(b, version)
	b = jute.AppendInt64(b, zxid)
	b = jute.AppendInt64(b, wall)
	return appendOp(b, x)
}

// appendOp appends the operation and its fields, with the protocol's primitives.
// decodeOp is its inverse.
func appendOp(b []byte, x *txn) []byte {
	b = jute.AppendInt32(b, int32(x.op))
	switch x.op {
	case wire.OpCreate:
		b = jute.AppendString(b, x.path)
		b = jute.AppendBuffer(b, x.data)
		b = appendACL(b, x.acl)
		b = jute.AppendInt64(b, x.owner)
	case wire.OpDelete:
		b = jute.AppendString(b, x.path)
	case wire.OpSetData:
		b = jute.AppendString(b, x.path)
		b = jute.AppendBuffer(b, x.data)
		b = jute.AppendInt32(b, x.version)
	case wire.OpSetACL:
		b = jute.AppendString(b, x.path)
		b = appendACL(b, x.acl)
		b = jute.AppendInt32(b, x.version)
	case wire.OpMulti:
		b = jute.AppendVectorLen(b, len(x.subs), false)
		for i := range x.subs {
			b = appendOp(b, &x.subs[i])
		}
	case wire.OpCreateSession:
		b = jute.AppendInt64(b, x.session)
		b = jute.AppendInt32(b, x.timeout)
		b = jute.AppendBuffer(b, x.data)
	case wire.OpCloseSession, opEndSession:
		b = jute.AppendInt64(b, x.session)
	case opSessionTimeout:
		b = jute.AppendInt64(b, x.session)
		b = jute.AppendInt32(b, x.timeout)
	case opJumpSequence:
		b = jute.AppendString(b, x.path)
		b = jute.AppendInt32(b, x.version)
	case wire.OpError:
		b = jute.AppendInt32(b, int32(x.err))
	}
	return b
}

// decodeOp reads what appendOp wrote. A multi cannot be nested. Buffers alias the
// record.
func decodeOp(r *jute.Reader, x *txn, inMulti bool) {
	x.op = wire.OpCode(r.Int32())
	switch x.op {
	case wire.OpCreate:
		x.path = r.String()
		x.data = r.Buffer()
		x.acl = decodeACL(r)
		x.owner = r.Int64()
		return
	case wire.OpDelete:
		x.path = r.String()
		return
	case wire.OpSetData:
		x.path = r.String()
		x.data = r.Buffer()
		x.version = r.Int32()
		return
	case wire.OpCheck:
		// A check changes nothing, but keeps the positions of a multi's results.
		if inMulti {
			return
		}
	}
	if inMulti {
		r.Failf("operation %d inside a multi", int32(x.op))
		return
	}
	decodeTopOp(r, x)
}

// decodeTopOp is decodeOp for operations that cannot be in a multi: sessions, setACL,
// multis, and failures. A multi that failed is one failure.
func decodeTopOp(r *jute.Reader, x *txn) {
	switch x.op {
	case wire.OpSetACL:
		x.path = r.String()
		x.acl = decodeACL(r)
		x.version = r.Int32()
	case wire.OpMulti:
		n := r.VectorLen(4)
		if n < 0 {
			r.Failf("operations of a multi missing")
			return
		}
		// VectorLen has checked that the record can contain that many. An operation
		// takes far more memory than bytes in the record, but the factor is bounded,
		// and the records are our own.
		x.subs = make([]txn, n)
		for i := range x.subs {
			decodeOp(r, &x.subs[i], true)
			if r.Err() != nil {
				return
			}
		}
	case wire.OpCreateSession:
		x.session = r.Int64()
		x.timeout = r.Int32()
		x.data = r.Buffer()
	case wire.OpCloseSession, opEndSession:
		x.session = r.Int64()
	case opSessionTimeout:
		x.session = r.Int64()
		x.timeout = r.Int32()
	case opJumpSequence:
		x.path = r.String()
		x.version = r.Int32()
	case wire.OpError:
		x.err = wire.ErrCode(r.Int32())
	default:
		r.Failf("operation %d", int32(x.op))
	}
}
