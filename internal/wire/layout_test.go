package wire_test

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// layout is a record and its bytes, derived by hand from zookeeper.jute.
type layout struct {
	name  string
	rec   wire.Record
	bytes string
}

// layouts returns the layouts of all records.
func layouts() []layout {
	var all []layout
	all = append(all, headerLayouts()...)
	all = append(all, connectLayouts()...)
	all = append(all, nodeRequestLayouts()...)
	all = append(all, nodeResponseLayouts()...)
	all = append(all, watchLayouts()...)
	all = append(all, adminLayouts()...)
	return append(all, multiLayouts()...)
}

// sampleStat returns a Stat with a different value in every field. sampleStatHex is its encoding.
func sampleStat() wire.Stat {
	return wire.Stat{
		Czxid: 0x100000001, Mzxid: 0x100000002, Ctime: 0x18c00000003, Mtime: 0x18c00000004,
		Version: 5, Cversion: 6, Aversion: 7, EphemeralOwner: 0x0123456789abcdef,
		DataLength: 9, NumChildren: 10, Pzxid: 0x10000000b,
	}
}

const sampleStatHex = `
	0000000100000001 0000000100000002 0000018c00000003 0000018c00000004
	00000005 00000006 00000007 0123456789abcdef 00000009 0000000a 000000010000000b`

// optionalTail reports whether the last byte of a record is optional: the read-only byte of the
// handshake.
func optionalTail(rec wire.Record) bool {
	switch rec.(type) {
	case *wire.ConnectRequest, *wire.ConnectResponse:
		return true
	}
	return false
}

func TestRecordsMatchLayouts(t *testing.T) {
	for _, row := range layouts() {
		t.Run(typeName(row.rec)+"/"+row.name, func(t *testing.T) {
			want := unhex(t, row.bytes)
			if got := row.rec.Append([]byte{0xee}); !bytes.Equal(got[1:], want) || got[0] != 0xee {
				t.Errorf("encoded\n%x, want\nee%x", got, want)
			}
			got := fresh(row.rec)
			if err := decode(got, want); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, row.rec) {
				t.Errorf("decoded %+v, want %+v", got, row.rec)
			}
		})
	}
}

// TestTruncatedLayoutsAreRefused decodes every proper prefix of every layout, and every layout with
// extra bytes.
func TestTruncatedLayoutsAreRefused(t *testing.T) {
	for _, row := range layouts() {
		whole := unhex(t, row.bytes)
		for n := range whole {
			err := decode(fresh(row.rec), whole[:n])
			if optionalTail(row.rec) && n == len(whole)-1 {
				continue
			}
			if !errors.Is(err, jute.ErrMalformed) {
				t.Errorf("%s/%s: %d of %d bytes: error %v, want ErrMalformed", typeName(row.rec), row.name, n, len(whole), err)
			}
		}
		if err := decode(fresh(row.rec), append(whole, 0, 0)); !errors.Is(err, jute.ErrMalformed) {
			t.Errorf("%s/%s: two bytes too many: error %v", typeName(row.rec), row.name, err)
		}
	}
}

func TestLayoutsCoverEveryRecord(t *testing.T) {
	have := map[string]bool{}
	for _, row := range layouts() {
		have[typeName(row.rec)] = true
	}
	for _, rec := range allRecords() {
		if !have[typeName(rec)] {
			t.Errorf("no layout for %s", typeName(rec))
		}
	}
}

// TestDecodeOverwritesAllFields decodes every layout into a record with other values.
func TestDecodeOverwritesAllFields(t *testing.T) {
	for _, dirty := range layouts() {
		for _, row := range layouts() {
			if typeName(dirty.rec) != typeName(row.rec) {
				continue
			}
			if err := decode(dirty.rec, unhex(t, row.bytes)); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(dirty.rec, row.rec) {
				t.Errorf("%s/%s over %s: %+v", typeName(row.rec), row.name, dirty.name, dirty.rec)
			}
		}
	}
}
