//go:build unix

package cli

import (
	"net"
	"os"
	"path/filepath"
	"testing"
)

// TestListenUnixAfterAKill: a socket that nobody serves any more is no reason
// not to start; one that is served is, and so is any other file.
func TestListenUnixAfterAKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	dead, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	dead.(*net.UnixListener).SetUnlinkOnClose(false) // as a killed process
	if err := dead.Close(); err != nil {
		t.Fatal(err)
	}
	ln, err := listenAt("unix:" + path)
	if err != nil {
		t.Fatalf("what a killed server left is in the way: %v", err)
	}
	if second, err := listenAt("unix:" + path); err == nil {
		second.Close()
		t.Error("the socket of a server that runs was taken away")
	}
	if conn, err := net.Dial("unix", path); err != nil {
		t.Errorf("the first server cannot be reached any more: %v", err)
	} else {
		conn.Close()
	}
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	if ln, err := listenAt("unix:" + path); err == nil {
		ln.Close()
		t.Error("a file was replaced by a socket")
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "a file" {
		t.Errorf("the file is %q, %v", b, err)
	}
}
