//go:build unix

package zkserver

import (
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestTLSFileMustBeRegular hangs if the product opens the pipe like a regular file.
func TestTLSFileMustBeRegular(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	must(t, syscall.Mkfifo(pipe, 0o600))
	_, err := TLSFiles{Cert: pipe}.Config()
	if !errors.Is(err, ErrTLSFiles) || !strings.Contains(err.Error(), "is a named pipe, not a regular file") {
		t.Error(err)
	}
}
