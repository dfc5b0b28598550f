package zkserver

import (
	"testing"
	"unsafe"
)

// A hundred thousand idle connections are the server's memory: this is what there
// is of each when it has nothing to do.
func TestSize(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("the sizes are those of 64 bits")
	}
	if size := unsafe.Sizeof(conn{}); size > 320 {
		t.Errorf("a connection takes %d bytes, want at most 320", size)
	}
}
