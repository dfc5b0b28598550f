package jute_test

import (
	"encoding/hex"
	"errors"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/zklock/zklock/internal/jute"
)

// unhex decodes a hexadecimal literal of a table.
func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestReaderDecodesPrimitives(t *testing.T) {
	tests := []struct {
		name string
		in   string
		read func(r *jute.Reader) any
		want any
	}{
		{"false", "00", func(r *jute.Reader) any { return r.Bool() }, false},
		{"true", "01", func(r *jute.Reader) any { return r.Bool() }, true},
		{"int", "fffffffe", func(r *jute.Reader) any { return r.Int32() }, int32(-2)},
		{"long", "0102030405060708", func(r *jute.Reader) any { return r.Int64() }, int64(0x0102030405060708)},
		{"null buffer", "ffffffff", func(r *jute.Reader) any { return r.Buffer() }, []byte(nil)},
		{"empty buffer", "00000000", func(r *jute.Reader) any { return r.Buffer() }, []byte{}},
		{"buffer", "00000002 0708", func(r *jute.Reader) any { return r.Buffer() }, []byte{7, 8}},
		{"empty string", "00000000", func(r *jute.Reader) any { return r.String() }, ""},
		{"null string", "ffffffff", func(r *jute.Reader) any { return r.StringOrNull() }, ""},
		{"string that may be null", "00000001 61", func(r *jute.Reader) any { return r.StringOrNull() }, "a"},
		{"string", "00000003 2fc3a4", func(r *jute.Reader) any { return r.String() }, "/ä"},
		{"string that is not UTF-8", "00000001 ff", func(r *jute.Reader) any { return r.String() }, "\xff"},
		{"null strings", "ffffffff", func(r *jute.Reader) any { return r.Strings() }, []string(nil)},
		{"no strings", "00000000", func(r *jute.Reader) any { return r.Strings() }, []string{}},
		{"strings", "00000002 00000001 61 00000000", func(r *jute.Reader) any { return r.Strings() }, []string{"a", ""}},
		{"null vector", "ffffffff", func(r *jute.Reader) any { return r.VectorLen(8) }, -1},
		{"empty vector", "00000000", func(r *jute.Reader) any { return r.VectorLen(8) }, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := jute.NewReader(unhex(t, test.in))
			if got := test.read(r); !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %#v, want %#v", got, test.want)
			}
			if err := r.Finish(); err != nil {
				t.Errorf("Finish: %v", err)
			}
		})
	}
}

// TestReaderRefusesMalformedInput checks that the value is zero and the error names the cause.
func TestReaderRefusesMalformedInput(t *testing.T) {
	tests := []struct {
		name string
		in   string
		read func(r *jute.Reader) any
		zero any
		says string
	}{
		{"no boolean", "", func(r *jute.Reader) any { return r.Bool() }, false, "boolean of 1 bytes, but 0 remain"},
		{"boolean 2", "02", func(r *jute.Reader) any { return r.Bool() }, false, "at byte 0: boolean byte is 2"},
		{"short int", "000000", func(r *jute.Reader) any { return r.Int32() }, int32(0), "int of 4 bytes, but 3 remain"},
		{"short long", "00000000000000", func(r *jute.Reader) any { return r.Int64() }, int64(0), "long of 8 bytes, but 7 remain"},
		{"buffer length -2", "fffffffe", func(r *jute.Reader) any { return r.Buffer() }, []byte(nil), "buffer length is -2"},
		{"buffer beyond the end", "00000002 07", func(r *jute.Reader) any { return r.Buffer() }, []byte(nil), "at byte 4: buffer of 2 bytes, but 1 remain"},
		{"buffer without a length", "0000", func(r *jute.Reader) any { return r.Buffer() }, []byte(nil), "int of 4"},
		{"string length -1", "ffffffff", func(r *jute.Reader) any { return r.String() }, "", "string length is -1"},
		{"string or null of length -2", "fffffffe", func(r *jute.Reader) any { return r.StringOrNull() }, "", "string length is -2"},
		{"string beyond the end", "7fffffff 61", func(r *jute.Reader) any { return r.String() }, "", "string of 2147483647 bytes, but 1 remain"},
		{"string without a length", "00", func(r *jute.Reader) any { return r.String() }, "", "int of 4"},
		{"strings count -2", "fffffffe", func(r *jute.Reader) any { return r.Strings() }, []string(nil), "vector count is -2"},
		{"strings beyond the end", "00000002 00000000 000000", func(r *jute.Reader) any { return r.Strings() }, []string(nil), "vector of 2 elements, but 7 bytes remain"},
		{"strings with a broken one", "00000002 00000001 61 00000009", func(r *jute.Reader) any { return r.Strings() }, []string(nil), "string of 9 bytes, but 0 remain"},
		{"vector count -2", "fffffffe", func(r *jute.Reader) any { return r.VectorLen(1) }, -1, "vector count is -2"},
		{"vector beyond the end", "00000002 0000000000000000 00000000000000", func(r *jute.Reader) any { return r.VectorLen(8) }, -1, "vector of 2"},
		{"vector of elements without size", "00000002 00", func(r *jute.Reader) any { return r.VectorLen(0) }, -1, "vector of 2"},
		{"vector without a count", "000000", func(r *jute.Reader) any { return r.VectorLen(1) }, -1, "int of 4"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := jute.NewReader(unhex(t, test.in))
			if got := test.read(r); !reflect.DeepEqual(got, test.zero) {
				t.Errorf("got %#v, want %#v", got, test.zero)
			}
			err := r.Err()
			if !errors.Is(err, jute.ErrMalformed) {
				t.Fatalf("error %v, want ErrMalformed", err)
			}
			if !strings.Contains(err.Error(), test.says) {
				t.Errorf("error %q, want it to say %q", err, test.says)
			}
		})
	}
}

// TestReaderKeepsFirstError checks that a Reader reads nothing after an error.
func TestReaderKeepsFirstError(t *testing.T) {
	r := jute.NewReader(unhex(t, "02 00000000 0000000000000000 00000001 61"))
	r.Bool()
	first, left := r.Err(), r.Remaining()
	if first == nil {
		t.Fatal("boolean 2 was accepted")
	}
	if r.Bool() || r.Int32() != 0 || r.Int64() != 0 || r.Buffer() != nil || r.String() != "" || r.Strings() != nil {
		t.Error("a failed reader returned a value")
	}
	if n := r.VectorLen(1); n != -1 {
		t.Errorf("a failed reader counted %d elements", n)
	}
	r.Failf("another reason")
	if r.Err() != first || r.Finish() != first {
		t.Errorf("error became %v, want still %v", r.Finish(), first)
	}
	if r.Remaining() != left {
		t.Errorf("%d bytes remain, want still %d", r.Remaining(), left)
	}
}

func TestFinishReportsRemainingBytes(t *testing.T) {
	r := jute.NewReader([]byte{0, 0, 0, 9, 1})
	if r.Int32() != 9 || r.Err() != nil {
		t.Fatal("the int was not read")
	}
	if err := r.Finish(); !errors.Is(err, jute.ErrMalformed) || !strings.Contains(err.Error(), "1 bytes after") {
		t.Errorf("Finish: %v, want an error about 1 byte", err)
	}
	var zero jute.Reader
	if err := zero.Finish(); err != nil {
		t.Errorf("the zero Reader: %v", err)
	}
}

func TestFailfReportsPosition(t *testing.T) {
	r := jute.NewReader([]byte{1, 2})
	r.Bool()
	r.Failf("no %s here", "multi")
	if err := r.Err(); !errors.Is(err, jute.ErrMalformed) || !strings.HasSuffix(err.Error(), "at byte 1: no multi here") {
		t.Errorf("error %v", err)
	}
}

func TestResetReadsNextMessage(t *testing.T) {
	r := jute.NewReader(nil)
	r.Int32()
	r.Reset([]byte{0, 0, 0, 5})
	if v := r.Int32(); v != 5 || r.Finish() != nil {
		t.Errorf("got %d and %v, want 5", v, r.Finish())
	}
}

// TestBufferAliasesWithinBounds checks that a buffer shares the memory of the input, and that an
// append to the buffer does not overwrite later fields.
func TestBufferAliasesWithinBounds(t *testing.T) {
	in := []byte{0, 0, 0, 1, 'a', 'b'}
	got := jute.NewReader(in).Buffer()
	in[4] = 'x'
	if string(got) != "x" {
		t.Errorf("buffer %q is a copy, want the input's memory", got)
	}
	if _ = append(got, 'y'); in[5] != 'b' {
		t.Error("an append to the buffer overwrote the rest of the message")
	}
}

// TestNamesReadsManyStringsWithFewAllocations reads strings that fill many blocks. Some of them are
// larger than a block.
func TestNamesReadsManyStringsWithFewAllocations(t *testing.T) {
	var want []string
	for i := range 1000 {
		want = append(want, strings.Repeat(string(rune('a'+i%26)), 1+i*i%300))
		if i%100 == 0 {
			want = append(want, strings.Repeat("x", 100*i+1))
		}
	}
	in := jute.AppendInt64(jute.AppendStrings(jute.AppendInt32(nil, 7), want), 8)
	var got []string
	allocations := testing.AllocsPerRun(10, func() {
		r := jute.NewReader(in)
		before := r.Int32()
		got = r.Names()
		if after := r.Int64(); before != 7 || after != 8 || r.Finish() != nil {
			t.Fatalf("before %d, after %d, %v", before, after, r.Finish())
		}
	})
	if !slices.Equal(got, want) {
		t.Error("Names returns other strings")
	}
	if most := float64(len(in)/(4<<10) + 2); allocations > most {
		t.Errorf("%.0f allocations for %d bytes, want at most %.0f", allocations, len(in), most)
	}
}

// TestNamesRefusesEmptyNames: no znode has an empty name. A list of empty names would use four
// times as much memory as the message.
func TestNamesRefusesEmptyNames(t *testing.T) {
	for _, names := range [][]string{{""}, {"abc", ""}, {"", "abc"}, make([]string, 1000)} {
		r := jute.NewReader(jute.AppendStrings(nil, names))
		if got := r.Names(); got != nil || r.Err() == nil {
			t.Errorf("%.3q was read as %.3q", names, got)
		}
	}
	if r := jute.NewReader(jute.AppendStrings(nil, []string{})); r.Names() == nil || r.Finish() != nil {
		t.Errorf("an empty list: %v", r.Err())
	}
}

func TestFalseLengthsAllocateLittle(t *testing.T) {
	in := unhex(t, "7ffffff0 00000000 00000000")
	for name, read := range map[string]func(r *jute.Reader){
		"buffer":  func(r *jute.Reader) { r.Buffer() },
		"string":  func(r *jute.Reader) { _ = r.String() },
		"strings": func(r *jute.Reader) { r.Strings() },
		"names":   func(r *jute.Reader) { r.Names() },
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r := jute.NewReader(in)
		read(r)
		runtime.ReadMemStats(&after)
		if r.Err() == nil {
			t.Errorf("%s of 2 GiB in 12 bytes was accepted", name)
		}
		if got := after.TotalAlloc - before.TotalAlloc; got > 64<<10 {
			t.Errorf("%s: %d bytes allocated for 12 bytes of input", name, got)
		}
	}
}
