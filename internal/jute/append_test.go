package jute_test

import (
	"bytes"
	"encoding/hex"
	"math"
	"testing"

	"github.com/zklock/zklock/internal/jute"
)

func TestAppendEncodesPrimitives(t *testing.T) {
	tests := []struct {
		name   string
		append func(b []byte) []byte
		want   string
	}{
		{"false", func(b []byte) []byte { return jute.AppendBool(b, false) }, "00"},
		{"true", func(b []byte) []byte { return jute.AppendBool(b, true) }, "01"},
		{"int", func(b []byte) []byte { return jute.AppendInt32(b, 0x01020304) }, "01020304"},
		{"int -1", func(b []byte) []byte { return jute.AppendInt32(b, -1) }, "ffffffff"},
		{"int min", func(b []byte) []byte { return jute.AppendInt32(b, math.MinInt32) }, "80000000"},
		{"long", func(b []byte) []byte { return jute.AppendInt64(b, 0x0102030405060708) }, "0102030405060708"},
		{"long -2", func(b []byte) []byte { return jute.AppendInt64(b, -2) }, "fffffffffffffffe"},
		{"null buffer", func(b []byte) []byte { return jute.AppendBuffer(b, nil) }, "ffffffff"},
		{"empty buffer", func(b []byte) []byte { return jute.AppendBuffer(b, []byte{}) }, "00000000"},
		{"buffer", func(b []byte) []byte { return jute.AppendBuffer(b, []byte{7, 8}) }, "000000020708"},
		{"empty string", func(b []byte) []byte { return jute.AppendString(b, "") }, "00000000"},
		{"string", func(b []byte) []byte { return jute.AppendString(b, "/ä") }, "000000032fc3a4"},
		{"null strings", func(b []byte) []byte { return jute.AppendStrings(b, nil) }, "ffffffff"},
		{"no strings", func(b []byte) []byte { return jute.AppendStrings(b, []string{}) }, "00000000"},
		{"strings", func(b []byte) []byte { return jute.AppendStrings(b, []string{"a", ""}) }, "00000002000000016100000000"},
		{"null vector", func(b []byte) []byte { return jute.AppendVectorLen(b, 3, true) }, "ffffffff"},
		{"vector", func(b []byte) []byte { return jute.AppendVectorLen(b, 3, false) }, "00000003"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := test.append([]byte("before"))
			rest, ok := bytes.CutPrefix(got, []byte("before"))
			if !ok {
				t.Fatalf("the existing bytes were changed: %x", got)
			}
			if hex.EncodeToString(rest) != test.want {
				t.Errorf("got %x, want %s", rest, test.want)
			}
		})
	}
}

func TestAppendAllocatesNothing(t *testing.T) {
	buf := make([]byte, 0, 256)
	data, list := []byte("data"), []string{"one", "two"}
	allocs := testing.AllocsPerRun(100, func() {
		b := jute.AppendBool(buf, true)
		b = jute.AppendInt32(b, 1)
		b = jute.AppendInt64(b, 2)
		b = jute.AppendBuffer(b, data)
		b = jute.AppendString(b, "string")
		jute.AppendStrings(b, list)
	})
	if allocs != 0 {
		t.Errorf("%v allocations, want 0", allocs)
	}
}
