//go:build unix

package config

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestPipesAreRefused checks that a pipe is not opened, which would block.
func TestPipesAreRefused(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for what, read := range map[string]func() error{
		"credentials": func() error { _, err := ReadFile(pipe); return err },
		"JAAS":        func() error { _, _, err := ReadJAAS(pipe, DefaultJAASSection); return err },
		"contexts":    func() error { _, err := Load(pipe, true); return err },
		"CA":          func() error { _, err := ClientTLS{CA: pipe}.Config(nil); return err },
		"certificate": func() error { _, err := ClientTLS{Cert: pipe}.Config(nil); return err },
		"key":         func() error { _, err := ClientTLS{Cert: "none", Key: pipe}.Config(nil); return err },
	} {
		if err := read(); err == nil || !strings.Contains(err.Error(), "is a named pipe, not a regular file") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if zxid := LastZxid(pipe); zxid != 0 {
		t.Errorf("a transaction id of %d", zxid)
	}
}
