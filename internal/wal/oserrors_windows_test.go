package wal

import (
	"fmt"
	"io/fs"
	"syscall"
	"testing"
)

// TestFullDiskErrorsAreRecognized has the system's error numbers. If they were not
// recognized, a failed preallocation would end the log, and no error would say what
// to do.
func TestFullDiskErrorsAreRecognized(t *testing.T) {
	for _, no := range []syscall.Errno{39, 112, 1295} {
		err := fmt.Errorf("wal: %w", &fs.PathError{Op: "write", Path: "log", Err: no})
		if !isFull(err) || Advice(err) == "" {
			t.Errorf("%v is not known for a full disk", err)
		}
	}
	if isFull(syscall.Errno(5)) {
		t.Error("a refused access passes for a full disk")
	}
}
