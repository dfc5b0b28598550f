package wal

import (
	"fmt"
	"io/fs"
	"syscall"
	"testing"
)

// TestFullDiskIsKnown has the numbers of the system: without them a segment that can't
// grow ahead would end the log, and no error would say what to do.
func TestFullDiskIsKnown(t *testing.T) {
	for _, no := range []syscall.Errno{39, 112, 1295} {
		err := fmt.Errorf("wal: %w", &fs.PathError{Op: "write", Path: "log", Err: no})
		if !isFull(err) || advice(err) == "" {
			t.Errorf("%v is not known for a full disk", err)
		}
	}
	if isFull(syscall.Errno(5)) {
		t.Error("a refused access passes for a full disk")
	}
}
