package zkserver

import (
	"testing"
	"unsafe"
)

// TestConnSizeIsBounded bounds the memory of an idle connection: a server may have 100,000.
func TestConnSizeIsBounded(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("the sizes are for 64 bits")
	}
	if size := unsafe.Sizeof(conn{}); size > 320 {
		t.Errorf("a connection takes %d bytes, want at most 320", size)
	}
}
