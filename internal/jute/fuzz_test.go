package jute_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/zklock/zklock/internal/jute"
)

// FuzzReader reads a primitive for each byte of a script, and encodes it again. Accepted input must
// be unchanged. A Reader of a stream must do the same.
func FuzzReader(f *testing.F) {
	f.Add([]byte{0, 1, 2}, []byte{1, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 8})
	f.Add([]byte{3, 4}, []byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1, 'a'})
	f.Add([]byte{3, 3}, []byte{0, 0, 0, 0, 0, 0, 0, 2, 1, 2})
	f.Add([]byte{5, 5}, []byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1, 0, 0, 0, 1, 'a'})
	f.Add([]byte{5}, []byte{0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 1, 'a'})
	f.Fuzz(func(t *testing.T, script, in []byte) {
		r := jute.NewReader(in)
		stream := jute.NewStreamReader(bytes.NewReader(in), int64(len(in)), make([]byte, 0, 3))
		var out []byte
		for _, step := range script {
			if step%6 == 5 {
				checkNames(t, *r)
			}
			next, same := copyOne(r, step, out), copyOne(stream, step, out)
			if !bytes.Equal(next, same) || fmt.Sprint(r.Err()) != fmt.Sprint(stream.Err()) || r.Remaining() != stream.Remaining() {
				t.Fatalf("a stream gives %x (%v), a slice %x (%v)", same, stream.Err(), next, r.Err())
			}
			if r.Err() != nil {
				break
			}
			out = next
		}
		if err := r.Err(); err != nil && !errors.Is(err, jute.ErrMalformed) {
			t.Fatalf("error %v does not wrap ErrMalformed", err)
		}
		if !bytes.HasPrefix(in, out) {
			t.Fatalf("read %x, wrote %x", in, out)
		}
		if r.Err() == nil && len(out)+r.Remaining() != len(in) {
			t.Fatalf("%d bytes written and %d remaining of %d", len(out), r.Remaining(), len(in))
		}
	})
}

// copyOne reads the primitive that step selects and appends it to out.
func copyOne(r *jute.Reader, step byte, out []byte) []byte {
	switch step % 6 {
	case 0:
		return jute.AppendBool(out, r.Bool())
	case 1:
		return jute.AppendInt32(out, r.Int32())
	case 2:
		return jute.AppendInt64(out, r.Int64())
	case 3:
		return jute.AppendBuffer(out, r.Buffer())
	case 4:
		return jute.AppendString(out, r.String())
	}
	return jute.AppendStrings(out, r.Strings())
}

// checkNames reads a vector of strings with Strings and with Names.
func checkNames(t *testing.T, r jute.Reader) {
	again := r
	v, names := r.Strings(), again.Names()
	if r.Err() == nil && slices.Contains(v, "") {
		if names != nil || again.Err() == nil {
			t.Fatalf("Names read %q with an empty name", names)
		}
	} else if !slices.Equal(v, names) || (v == nil) != (names == nil) || (r.Err() == nil) != (again.Err() == nil) || r.Err() == nil && r.Remaining() != again.Remaining() {
		t.Fatalf("Strings read %q (%v), Names %q (%v)", v, r.Err(), names, again.Err())
	}
}
