package wire_test

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/zklock/zklock/internal/wire"
)

// TestRandomRecordsRoundTrip encodes every record with random values, decodes it, and encodes it
// again.
func TestRandomRecordsRoundTrip(t *testing.T) {
	const rounds = 300
	for _, rec := range allRecords() {
		t.Run(typeName(rec), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 2))
			for round := range rounds {
				want := fresh(rec)
				fill(rng, want)
				first := want.Append(nil)
				got := fresh(rec)
				if err := decode(got, first); err != nil {
					t.Fatalf("round %d: %+v: %v", round, want, err)
				}
				if !reflect.DeepEqual(got, want) {
					t.Fatalf("round %d: decoded %+v, want %+v", round, got, want)
				}
				if again := got.Append(nil); !bytes.Equal(again, first) {
					t.Fatalf("round %d: encoded %x, then %x", round, first, again)
				}
			}
		})
	}
}

// TestRandomBytesNeverPanic decodes random records with a few changed bytes. A decoded record must
// encode to the same bytes.
func TestRandomBytesNeverPanic(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	accepted, refused := 0, 0
	for _, rec := range allRecords() {
		for range 300 {
			whole := fresh(rec)
			fill(rng, whole)
			b := whole.Append(nil)
			for range rng.IntN(4) {
				if len(b) > 0 {
					b[rng.IntN(len(b))] = []byte{0, 1, 0x7f, 0xff, byte(rng.Uint32())}[rng.IntN(5)]
				}
			}
			got := fresh(rec)
			if err := decode(got, b); err != nil {
				refused++
				continue
			}
			accepted++
			if again := got.Append(nil); !bytes.Equal(again, b) {
				t.Fatalf("%s: read %x, wrote %x", typeName(rec), b, again)
			}
		}
	}
	if accepted < 1000 || refused < 1000 {
		t.Errorf("%d accepted and %d refused, want 1000 each", accepted, refused)
	}
}

// fill sets the record's fields to random values that it can hold.
func fill(rng *rand.Rand, rec wire.Record) {
	switch rec := rec.(type) {
	case *wire.MultiRequest:
		rec.Ops = randomOps(rng, wire.OpCreate, wire.OpCreate2, wire.OpCreateContainer,
			wire.OpCreateTTL, wire.OpDelete, wire.OpSetData, wire.OpCheck)
	case *wire.MultiReadRequest:
		rec.Ops = randomOps(rng, wire.OpGetData, wire.OpGetChildren)
	case *wire.MultiResponse:
		rec.Results = randomResults(rng)
	default:
		fillValue(rng, reflect.ValueOf(rec).Elem())
	}
	switch rec := rec.(type) {
	case *wire.ConnectRequest:
		rec.ReadOnly = rec.ReadOnly && rec.HasReadOnly
	case *wire.ConnectResponse:
		rec.ReadOnly = rec.ReadOnly && rec.HasReadOnly
	}
}

// fillValue sets v to a random value. One third of the slices is nil, and one third empty.
func fillValue(rng *rand.Rand, v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(rng.IntN(2) == 1)
	case reflect.Int32, reflect.Int64:
		v.SetInt(randomInt(rng, v.Type().Bits()))
	case reflect.Uint8:
		v.SetUint(uint64(rng.IntN(256)))
	case reflect.String:
		b := make([]byte, rng.IntN(12))
		for i := range b {
			b[i] = byte(rng.IntN(256))
		}
		v.SetString(string(b))
	case reflect.Struct:
		for i := range v.NumField() {
			fillValue(rng, v.Field(i))
		}
	case reflect.Slice:
		n := [...]int{-1, 0, 1 + rng.IntN(8)}[rng.IntN(3)]
		if n < 0 {
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fillValue(rng, v.Index(i))
		}
	default:
		panic("no random value for " + v.Type().String())
	}
}

// randomInt returns a random integer, often one at the ends or in the middle of the range.
func randomInt(rng *rand.Rand, bits int) int64 {
	top := int64(1)<<(bits-1) - 1
	edges := [...]int64{0, 1, -1, top, -top - 1, top - 1}
	if i := rng.IntN(2 * len(edges)); i < len(edges) {
		return edges[i]
	}
	return int64(rng.Uint64()) >> (64 - bits)
}

// randomOps returns up to four operations of the given kinds.
func randomOps(rng *rand.Rand, kinds ...wire.OpCode) []wire.MultiOp {
	var ops []wire.MultiOp
	for range rng.IntN(5) {
		op := kinds[rng.IntN(len(kinds))]
		req := wire.NewRequest(op)
		fill(rng, req)
		ops = append(ops, wire.MultiOp{Op: op, Req: req})
	}
	return ops
}

// randomResults returns up to four results of all kinds.
func randomResults(rng *rand.Rand) []wire.MultiResult {
	kinds := []wire.OpCode{
		wire.OpCreate, wire.OpCreate2, wire.OpDelete, wire.OpSetData, wire.OpCheck,
		wire.OpGetData, wire.OpGetChildren, wire.OpError,
	}
	var results []wire.MultiResult
	for range rng.IntN(5) {
		res := wire.MultiResult{Op: kinds[rng.IntN(len(kinds))]}
		switch res.Op {
		case wire.OpError:
			res.Err = wire.ErrCode(randomInt(rng, 32))
		case wire.OpDelete, wire.OpCheck:
		default:
			res.Resp = wire.NewResponse(res.Op)
			fill(rng, res.Resp)
		}
		results = append(results, res)
	}
	return results
}
