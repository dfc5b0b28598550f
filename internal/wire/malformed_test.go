package wire_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// TestMalformedBodiesAreRefused checks that each error names the cause.
func TestMalformedBodiesAreRefused(t *testing.T) {
	tests := []struct {
		name  string
		rec   wire.Record
		bytes string
		says  string
	}{
		{"header of 3 bytes", new(wire.RequestHeader), "000000", "int of 4 bytes, but 3 remain"},
		{"header of no bytes", new(wire.RequestHeader), "", "but 0 remain"},
		{"reply header of 8 bytes", new(wire.ReplyHeader), "ffffffff 00000000", "long of 8 bytes, but 4 remain"},
		{"event of 8 bytes", new(wire.WatcherEvent), "00000001 00000003", "int of 4 bytes, but 0 remain"},
		{"event with a null path", new(wire.WatcherEvent), "00000001 00000003 ffffffff", "string length is -1"},
		{"world's null id", new(wire.ACL), "0000001f 00000005 776f726c64 ffffffff", "string length is -1"},
		{"string longer than the frame", new(wire.SyncRequest), "00000005 2f61", "string of 5 bytes, but 2 remain"},
		{"string of 2 GiB", new(wire.SyncRequest), "7fffffff 2f61", "string of 2147483647 bytes"},
		{"data longer than the frame", new(wire.SetDataRequest), "00000001 2f 00000100 00", "buffer of 256 bytes"},
		{"data of length -2", new(wire.SetDataRequest), "00000001 2f fffffffe 00000000", "buffer length is -2"},
		{"watch byte 2", new(wire.GetDataRequest), "00000001 2f 02", "boolean byte is 2"},
		{"children longer than the frame", new(wire.GetChildrenResponse), "00000003 00000000 00000000", "vector of 3 elements, but 8"},
		{"children count -2", new(wire.GetChildrenResponse), "fffffffe", "vector count is -2"},
		{"a null child", new(wire.GetChildrenResponse), "00000001 ffffffff", "string length is -1"},
		{"ACL longer than the frame", new(wire.SetACLRequest), "00000001 2f 00000002" + "0000001f 00000000 00000000" + "0000001f 00000000", "vector of 2 elements"},
		{"ACL with a broken entry", new(wire.SetACLRequest), "00000001 2f 00000001" + "0000001f 00000009 00000000", "string of 9 bytes"},
		{"identities longer than the frame", new(wire.WhoAmIResponse), "00000002 00000000 00000000 00000000", "vector of 2 elements"},
		{"broken identity", new(wire.WhoAmIResponse), "00000001 00000000 00000008", "string of 8 bytes"},
		{"bytes after the record", new(wire.SyncRequest), "00000001 2f 00", "1 bytes after the record"},
		{"read-only byte 3", new(wire.ConnectRequest), strings.Repeat("00", 24) + "00000000 03", "boolean byte is 3"},
		{"password longer than the frame", new(wire.ConnectResponse), strings.Repeat("00", 16) + "00000010 00", "buffer of 16 bytes"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := decode(test.rec, unhex(t, test.bytes))
			if !errors.Is(err, jute.ErrMalformed) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("error %v, want ErrMalformed that says %q", err, test.says)
			}
		})
	}
}

func TestMalformedMultisAreRefused(t *testing.T) {
	const (
		req      = "00 ffffffff"
		res      = "00 00000000"
		deletion = "00000001 2f ffffffff"
	)
	tests := []struct {
		name  string
		rec   wire.Record
		bytes string
		says  string
	}{
		{"no end", new(wire.MultiRequest), "00000002" + req + deletion, "int of 4 bytes, but 0 remain"},
		{"multi in a multi", new(wire.MultiRequest), "0000000e" + req + endHex + endHex, "multi inside a multi"},
		{"multiRead in a multi", new(wire.MultiRequest), "00000016" + req + endHex + endHex, "multiRead inside a multi"},
		{"read in a multi", new(wire.MultiRequest), "00000004" + req + "00000001 2f 00" + endHex, "getData inside a multi"},
		{"write in a multiRead", new(wire.MultiReadRequest), "00000002" + req + deletion + endHex, "delete inside a multiRead"},
		{"multi in a multiRead", new(wire.MultiReadRequest), "0000000e" + req + endHex + endHex, "multi inside a multiRead"},
		{"unknown operation", new(wire.MultiRequest), "0000004d" + req + endHex, "op77 inside a multi"},
		{"error as an operation", new(wire.MultiRequest), "ffffffff" + req + endHex, "error inside a multi"},
		{"operation with an error", new(wire.MultiRequest), "00000002 00 00000000" + deletion + endHex, "error 0 in a multi's operation"},
		{"end that is an operation", new(wire.MultiRequest), "00000002 01 ffffffff", "end of a multi with operation 2"},
		{"end with an error", new(wire.MultiRequest), "ffffffff 01 00000000", "end of a multi with operation -1 and error 0"},
		{"done byte 2", new(wire.MultiRequest), "ffffffff 02 ffffffff", "boolean byte is 2"},
		{"bytes after the end marker", new(wire.MultiRequest), endHex + "00", "1 bytes after"},
		{"broken operation", new(wire.MultiRequest), "00000002" + req + "00000001 2f ffff", "int of 4 bytes, but 2 remain"},
		{"result of a multi", new(wire.MultiResponse), "0000000e" + res + endHex + endHex, "result of multi inside a multi"},
		{"result of a container", new(wire.MultiResponse), "00000013" + res + endHex, "result of createContainer inside"},
		{"result with an error", new(wire.MultiResponse), "00000002 00 ffffff9b" + endHex, "result of delete with error -101"},
		{"two codes", new(wire.MultiResponse), "ffffffff 00 ffffff9b ffffff9a" + endHex, "error -101 in the header and -102 in the body"},
		{"error without a body", new(wire.MultiResponse), "ffffffff 00 ffffff9b 0000", "int of 4 bytes, but 2 remain"},
		{"broken result", new(wire.MultiResponse), "00000001" + res + "00000009 2f", "string of 9 bytes"},
		{"no results, no end", new(wire.MultiResponse), "", "int of 4 bytes"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := decode(test.rec, unhex(t, test.bytes))
			if !errors.Is(err, jute.ErrMalformed) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("error %v, want ErrMalformed that says %q", err, test.says)
			}
		})
	}
}

// TestDecodeAllocatesLittle decodes frames with false counts, and frames full of the smallest
// elements, and checks that the memory is a small multiple of the frame.
func TestDecodeAllocatesLittle(t *testing.T) {
	const size = 1 << 20
	packed := func(head string, n int32, element string) []byte {
		b := jute.AppendInt32(unhex(t, head), n)
		for e := unhex(t, element); len(b)+len(e) <= size; {
			b = append(b, e...)
		}
		return b
	}
	repeated := func(element string) []byte {
		return packed("", 0, element)[4:]
	}
	tests := []struct {
		name string
		rec  wire.Record
		in   []byte
	}{
		{"count longer than the frame", new(wire.GetChildrenResponse), packed("", 0x7fffffff, "00000000")},
		{"empty children", new(wire.GetChildrenResponse), packed("", size/4-1, "00000000")},
		{"empty ACL entries", new(wire.SetACLRequest), packed("00000000", size/12-1, "00000000 00000000 00000000")},
		{"empty identities", new(wire.WhoAmIResponse), packed("", size/8-1, "00000000 00000000")},
		{"smallest operations", new(wire.MultiRequest), repeated("00000002 00 ffffffff 00000000 00000000")},
		{"smallest results", new(wire.MultiResponse), repeated("00000002 00 00000000")},
	}
	for _, test := range tests {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		// Most of these end with an error. Allocations before the error count.
		err := decode(test.rec, test.in)
		runtime.ReadMemStats(&after)
		got := after.TotalAlloc - before.TotalAlloc
		if got > 16*size {
			t.Errorf("%s (%v): %d bytes allocated for a frame of %d", test.name, err, got, len(test.in))
		}
	}
}
