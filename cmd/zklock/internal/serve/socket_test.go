//go:build unix

package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/zk"
)

// TestListenUnixIsClosedToOthers checks the mode of the socket with any umask. A client needs
// permission to write to its file.
func TestListenUnixIsClosedToOthers(t *testing.T) {
	for umask, want := range map[int]os.FileMode{0: 0o660, 0o002: 0o660, 0o022: 0o640, 0o077: 0o600} {
		path := filepath.Join(t.TempDir(), "s")
		old := syscall.Umask(umask)
		ln, err := listenAt("unix:" + path)
		syscall.Umask(old)
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Lstat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("umask %04o: mode %v, %v, want %v", umask, info.Mode(), err, want)
		}
		ln.Close()
	}
}

// TestListenUnixFollowsNoLinkOfAnotherUser checks that an unused socket behind such a link is
// kept.
func TestListenUnixFollowsNoLinkOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to make a link another user's")
	}
	top := t.TempDir()
	real, link := filepath.Join(top, "real"), filepath.Join(top, "link")
	if err := errors.Join(os.Mkdir(real, 0o755), os.Symlink("real", link)); err != nil {
		t.Fatal(err)
	}
	ln, err := listenAt("unix:" + filepath.Join(link, "s"))
	if err != nil {
		t.Fatal(err)
	}
	// as when the process is killed: the socket stays
	if err := errors.Join(ln.(*ownSocket).UnixListener.Close(), os.Lchown(link, 12345, -1)); err != nil {
		t.Fatal(err)
	}
	if ln, err := listenAt("unix:" + filepath.Join(link, "s")); err == nil || !strings.Contains(err.Error(), "symbolic link of user 12345") {
		t.Errorf("a link of another user: %v, %v", ln, err)
	}
	if _, err := os.Lstat(filepath.Join(real, "s")); err != nil {
		t.Errorf("the socket there: %v", err)
	}
}

// TestListenUnixRemovesItsOwnSocket checks that a file is kept if the path leads to another
// directory when the listener closes.
func TestListenUnixRemovesItsOwnSocket(t *testing.T) {
	top := t.TempDir()
	run, other := filepath.Join(top, "run"), filepath.Join(top, "other")
	if err := errors.Join(os.Mkdir(run, 0o755), os.Mkdir(other, 0o755), os.WriteFile(filepath.Join(other, "s"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	ln, err := listenAt("unix:" + filepath.Join(run, "s"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Rename(run, run+"-old"), os.Symlink(other, run), ln.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(filepath.Join(other, "s")); err != nil {
		t.Errorf("the file in the other directory: %v", err)
	}
	if _, err := os.Lstat(filepath.Join(run+"-old", "s")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket: %v", err)
	}
}

// TestExposureOfOpenSockets checks that a socket that every user may connect to causes a warning.
func TestExposureOfOpenSockets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	ln, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	p := &plan{sockets: []Socket{{Name: "unknown", Listener: ln}}}
	for mode, want := range map[os.FileMode][]string{0o666: {"SocketMode=0660"}, 0o660: nil} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		wantWarnings(t, mode.String(), p.exposures(), want)
	}
	// Sockets without TLS need no certificates.
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	p.tls.Files.ClientAuth = tls.RequireAndVerifyClientCert
	for _, p.tls.Unify = range []bool{false, true} {
		wantWarnings(t, "with a port for TLS", p.exposures(), []string{"SocketMode=0660"})
	}
	p.sockets[0].Name, p.tls.Unify = socketTLS, false
	wantWarnings(t, "a socket for TLS", p.exposures(), nil)
	p.sockets[0].Name = socketMetrics // readers of metrics do not authenticate
	wantWarnings(t, "a socket for metrics", p.exposures(), []string{"SocketMode=0660"})
}

// TestListenUnixReplacesUnusedSocket checks that a socket without a server does not prevent a
// start. A socket in use, or another file, does.
func TestListenUnixReplacesUnusedSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	dead, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	dead.(*net.UnixListener).SetUnlinkOnClose(false) // as when the process is killed
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

// TestTooLongSocketPathIsExplained checks that the errors of a server and of its clients
// tell the limit.
func TestTooLongSocketPathIsExplained(t *testing.T) {
	path := filepath.Join(t.TempDir(), strings.Repeat("x", 110))
	_, listenErr := listenAt("unix:" + path)
	var dialErr error
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, dialErr = zk.Dial(ctx, "unix:"+path, nil)
	})
	for _, err := range []error{listenErr, dialErr} {
		if err == nil || !strings.Contains(err.Error(), "bytes, and Linux allows 107 for a socket") {
			t.Errorf("error %v", err)
		}
	}
}
