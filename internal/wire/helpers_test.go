package wire_test

import (
	"encoding/hex"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// unhex decodes a hexadecimal literal, which may contain spaces and newlines.
func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// decode decodes all of b into rec.
func decode(rec wire.Record, b []byte) error {
	r := jute.NewReader(b)
	rec.Decode(r)
	return r.Finish()
}

// fresh returns a zero record of the type of rec.
func fresh(rec wire.Record) wire.Record {
	return reflect.New(reflect.TypeOf(rec).Elem()).Interface().(wire.Record)
}

// typeName returns the record's type without its package.
func typeName(rec wire.Record) string {
	return reflect.TypeOf(rec).Elem().Name()
}

// operations returns all codes that a client may send.
func operations() []wire.OpCode {
	return []wire.OpCode{
		wire.OpCreate, wire.OpDelete, wire.OpExists, wire.OpGetData, wire.OpSetData, wire.OpGetACL,
		wire.OpSetACL, wire.OpGetChildren, wire.OpSync, wire.OpPing, wire.OpGetChildren2, wire.OpCheck,
		wire.OpMulti, wire.OpCreate2, wire.OpReconfig, wire.OpCheckWatches, wire.OpRemoveWatches,
		wire.OpCreateContainer, wire.OpCreateTTL, wire.OpMultiRead, wire.OpAuth, wire.OpSetWatches,
		wire.OpSASL, wire.OpGetEphemerals, wire.OpGetAllChildrenNumber, wire.OpSetWatches2,
		wire.OpAddWatch, wire.OpWhoAmI, wire.OpCloseSession,
	}
}

// allRecords returns one empty record of every type.
func allRecords() []wire.Record {
	recs := []wire.Record{
		new(wire.Empty), new(wire.RequestHeader), new(wire.ReplyHeader), new(wire.ConnectRequest),
		new(wire.ConnectResponse), new(wire.Stat), new(wire.ACL), new(wire.ClientInfo),
		new(wire.WatcherEvent), new(wire.ErrorResponse),
	}
	seen := map[reflect.Type]bool{}
	for _, rec := range recs {
		seen[reflect.TypeOf(rec)] = true
	}
	for _, op := range operations() {
		for _, rec := range []wire.Record{wire.NewRequest(op), wire.NewResponse(op)} {
			if !seen[reflect.TypeOf(rec)] {
				seen[reflect.TypeOf(rec)] = true
				recs = append(recs, rec)
			}
		}
	}
	return recs
}

// The directions of a message, as in golden files.
const (
	dirRequest         = "request"
	dirReply           = "reply"
	dirEvent           = "event"
	dirConnectRequest  = "connect-request"
	dirConnectResponse = "connect-reply"
)

// recode decodes a frame's body and encodes the result. The header of a request must
// have the code op, unless op is zero.
func recode(direction string, op wire.OpCode, body []byte) ([]byte, error) {
	r := jute.NewReader(body)
	var parts []wire.Record
	read := func(rec wire.Record) {
		rec.Decode(r)
		parts = append(parts, rec)
	}
	switch direction {
	case dirConnectRequest:
		read(new(wire.ConnectRequest))
	case dirConnectResponse:
		read(new(wire.ConnectResponse))
	case dirEvent:
		read(new(wire.ReplyHeader))
		read(new(wire.WatcherEvent))
	case dirReply:
		h := new(wire.ReplyHeader)
		read(h)
		if h.Err != wire.ErrOK {
			break // an error has no body
		}
		rec := wire.NewResponse(op)
		if rec == nil {
			return nil, fmt.Errorf("no answer to %v", op)
		}
		read(rec)
	case dirRequest:
		h := new(wire.RequestHeader)
		read(h)
		if op != 0 && h.Op != op {
			return nil, fmt.Errorf("header says %v, want %v", h.Op, op)
		}
		// An unknown request has only a header.
		if rec := wire.NewRequest(h.Op); rec != nil {
			read(rec)
		}
	default:
		return nil, fmt.Errorf("unknown direction %q", direction)
	}
	if err := r.Finish(); err != nil {
		return nil, err
	}
	var out []byte
	for _, rec := range parts {
		out = rec.Append(out)
	}
	return out, nil
}
