package wal

import (
	"bytes"
	"testing"
)

// TestFileNames converts indexes to file names and back, and refuses other names.
func TestFileNames(t *testing.T) {
	for _, index := range []uint64{0, 1, 42, 1<<64 - 1} {
		name := fileName(segmentPrefix, index)
		if got, ok := parseName(segmentPrefix, name); !ok || got != index {
			t.Errorf("%s: %d, %v", name, got, ok)
		}
	}
	if a, b := fileName(segmentPrefix, 9), fileName(segmentPrefix, 10); a >= b {
		t.Errorf("%s is not before %s", a, b)
	}
	for _, name := range []string{"", "log-", "log-1", "log--0000000000000000001", "log-+0000000000000000001", "log-99999999999999999999",
		"log-00000000000000000001.tmp", "snapshot-00000000000000000001", "xlog-00000000000000000001", "log-0000000000000000000x"} {
		if index, ok := parseName(segmentPrefix, name); ok {
			t.Errorf("%q passed for %d", name, index)
		}
	}
}

// TestBatchHeaderIsValidOnlyAtItsPosition checks that a header is not valid at
// another position.
func TestBatchHeaderIsValidOnlyAtItsPosition(t *testing.T) {
	at := batchPosition{seed: saltSeed(1), first: 10, offset: 32}
	b := make([]byte, batchHeaderSize)
	want := batchHeader{count: 3, first: 12, length: 99}
	putBatchHeader(b, at, want)
	if got, ok := parseBatchHeader(b, at); !ok || got != want {
		t.Fatalf("%+v, %v", got, ok)
	}
	for _, other := range []batchPosition{
		{seed: saltSeed(2), first: 10, offset: 32},
		{seed: saltSeed(1), first: 11, offset: 32},
		{seed: saltSeed(1), first: 10, offset: 33},
	} {
		if _, ok := parseBatchHeader(b, other); ok {
			t.Errorf("sound at %+v too", other)
		}
	}
	for n := range b {
		if _, ok := parseBatchHeader(b[:n], at); ok {
			t.Errorf("sound with %d bytes", n)
		}
	}
}

// TestSplitRecord has headers with false lengths.
func TestSplitRecord(t *testing.T) {
	var s scratch
	b := appendRecord(nil, &s, 7, 1, []byte("one"))
	b = appendRecord(b, &s, 7, 2, nil)
	one, rest, crc, ok := splitRecord(b)
	if !ok || string(one) != "one" || crc != recordCRC(&s, 7, 1, one) || crc == recordCRC(&s, 7, 2, one) || crc == recordCRC(&s, 8, 1, one) {
		t.Fatalf("%q %v", one, ok)
	}
	if two, rest, _, ok := splitRecord(rest); !ok || len(two) != 0 || len(rest) != 0 {
		t.Fatalf("%q %q %v", two, rest, ok)
	}
	for _, bad := range [][]byte{nil, b[:7], b[:10], {0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 1}} {
		if _, _, _, ok := splitRecord(bad); ok {
			t.Errorf("%x was split", bad)
		}
	}
}

// TestAllZero checks every byte, in and between blocks.
func TestAllZero(t *testing.T) {
	for _, n := range []int{0, 1, 4095, 4096, 4097, 9000} {
		b := make([]byte, n)
		if !allZero(b) {
			t.Errorf("%d zeros", n)
		}
		for _, at := range []int{0, n / 2, n - 1, 4096} {
			if at < 0 || at >= n {
				continue
			}
			b[at] = 1
			if allZero(b) {
				t.Errorf("a one at %d of %d", at, n)
			}
			b[at] = 0
		}
	}
}

// TestLaterHeader finds a header at any position, including chunk boundaries, but not
// one of an earlier batch or before the damage.
func TestLaterHeader(t *testing.T) {
	const chunk = 64 << 10
	p := batchPosition{seed: saltSeed(3), first: 1}
	for _, at := range []int64{1, 27, 28, 29, 1000, chunk - 28, chunk - 27, chunk - 1, chunk, chunk + 1, 2*chunk - 60, 3*chunk - 28} {
		file := bytes.Repeat([]byte(batchMarker), 3*chunk/4)
		p.offset = at
		putBatchHeader(file[at:], p, batchHeader{first: 5})
		for next, want := range map[uint64]bool{4: true, 5: true, 6: false} {
			found, _, ok, err := laterHeader(bytes.NewReader(file), int64(len(file)), p, &damage{offset: 0, next: next})
			if err != nil || ok != want || (ok && found != at) {
				t.Errorf("header at %d, next %d: %d, %v, %v", at, next, found, ok, err)
			}
		}
		if _, _, ok, err := laterHeader(bytes.NewReader(file), int64(len(file)), p, &damage{offset: at, next: 1}); ok || err != nil {
			t.Errorf("header at %d found behind itself: %v", at, err)
		}
	}
	if _, _, _, err := laterHeader(bytes.NewReader(make([]byte, 10)), 20, p, &damage{}); err == nil {
		t.Error("a file that ends early is no error")
	}
}
