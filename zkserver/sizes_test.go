package zkserver

import (
	"testing"
	"unsafe"
)

// What an idle session takes is the server's memory: these are what is left of a
// connection when it has nothing to do.
func TestSizes(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("the sizes are those of 64 bits")
	}
	for what, s := range map[string]struct{ size, most uintptr }{
		"connection": {unsafe.Sizeof(conn{}), 288},
		"polled one": {unsafe.Sizeof(polled{}), 48},
	} {
		t.Log(what, s.size)
		if s.size > s.most {
			t.Errorf("a %s takes %d bytes, want at most %d", what, s.size, s.most)
		}
	}
}
