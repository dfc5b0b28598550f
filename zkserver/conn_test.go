package zkserver

import (
	"testing"
	"unsafe"
)

// TestConnSize bounds the memory of an idle connection: a server may have a hundred
// thousand.
func TestConnSize(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("the sizes are those of 64 bits")
	}
	if size := unsafe.Sizeof(conn{}); size > 320 {
		t.Errorf("a connection takes %d bytes, want at most 320", size)
	}
}
