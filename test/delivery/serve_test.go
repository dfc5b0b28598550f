package delivery

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zklock/zklock/internal/wire"
	"github.com/zklock/zklock/test/harness"
	"github.com/zklock/zklock/zk"
)

// server is the command that serves at a unix socket, with the lines of its log.
type server struct {
	*exec.Cmd
	path string
	log  *bufio.Reader
}

// serving starts one in memory.
func serving(t *testing.T, args ...string) *server {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	s := &server{Cmd: exec.Command(harness.Command(t), append([]string{"serve", "--memory", "--listen", "unix:" + path}, args...)...), path: path}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	s.Stderr, s.log = w, bufio.NewReader(r)
	start(t, s.Cmd)
	w.Close()
	waitFor(t, path)
	return s
}

// logged waits for a line of the log with a word in it.
func (s *server) logged(t *testing.T, word string) {
	t.Helper()
	for {
		line, err := s.log.ReadString('\n')
		if err != nil {
			t.Fatalf("the log ended without %q: %v", word, err)
		}
		if strings.Contains(line, word) {
			return
		}
	}
}

// signal sends one.
func (s *server) signal(t *testing.T, sig os.Signal) {
	t.Helper()
	if err := s.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// deafen connects a client that asks for more than a socket holds and reads
// nothing of it but the first bytes.
func deafen(t *testing.T, path string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := zk.Dial(ctx, "unix:"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, _, err := c.Create(ctx, "/big", make([]byte, 1_000_000), nil, zk.ModePersistent); err != nil {
		t.Fatal(err)
	}
	nc, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	if err := nc.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	b := wire.AppendRecord(nil, &wire.ConnectRequest{Timeout: 30_000, Password: make([]byte, 16)})
	for xid := range int32(5) {
		b = wire.AppendRequest(b, xid+1, wire.OpGetData, &wire.GetDataRequest{Path: "/big"})
	}
	if _, err := nc.Write(b); err != nil {
		t.Fatal(err)
	}
	head := make([]byte, 4)
	if _, err := io.ReadFull(nc, head); err != nil {
		t.Fatal(err)
	}
	// The answer to the handshake, and the length of the first reply.
	if _, err := io.CopyN(io.Discard, nc, int64(binary.BigEndian.Uint32(head))+4); err != nil {
		t.Fatal(err)
	}
}

// TestSecondSignal: the first waits for a client that reads nothing, the second
// does not.
func TestSecondSignal(t *testing.T) {
	s := serving(t)
	deafen(t, s.path)
	s.signal(t, syscall.SIGTERM)
	s.logged(t, "msg=stopping")
	s.signal(t, syscall.SIGINT)
	s.logged(t, "a second signal ended the shutdown")
	err := s.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 128+int(syscall.SIGINT) {
		t.Errorf("it ended with %v, want %d", err, 128+int(syscall.SIGINT))
	}
}

// TestHangUp: a terminal that is gone ends a server in good order, unless it was
// started to outlive one.
func TestHangUp(t *testing.T) {
	// A signal that this process ignores would be ignored by the command too.
	own := make(chan os.Signal, 1)
	signal.Notify(own, syscall.SIGHUP)
	s := serving(t)
	signal.Stop(own)
	s.signal(t, syscall.SIGHUP)
	s.logged(t, `why=hangup`)
	if err := s.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	if _, err := os.Stat(s.path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its socket is still there: %v", err)
	}

	signal.Ignore(syscall.SIGHUP) // as nohup does
	s = serving(t)
	signal.Reset(syscall.SIGHUP)
	s.signal(t, syscall.SIGHUP)
	hold(t, "unix:"+s.path, nil)
	s.signal(t, syscall.SIGTERM)
	s.logged(t, "why=terminated")
	if err := s.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// TestLogThatNobodyReads: who reads the log and goes away does not take the
// server along.
func TestLogThatNobodyReads(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "s")
	c := exec.Command(harness.Command(t), "serve", "--memory", "--listen", "unix:"+path)
	c.Stderr = w
	start(t, c)
	w.Close()
	waitFor(t, path)
	r.Close()
	hold(t, "unix:"+path, nil)
	end(t, c) // whose end is logged
}

// TestZooCfgOfDebian serves by the file of the package zookeeper, as it is.
func TestZooCfgOfDebian(t *testing.T) {
	const file = "/etc/zookeeper/conf/zoo.cfg"
	if _, err := os.Stat(file); err != nil {
		harness.SkipOrFail(t, file+" is not there: "+err.Error())
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "s")
	var log strings.Builder
	// The flags come before dataDir and clientPort, which are others' here.
	c := exec.Command(harness.Command(t), "serve", "--config", file, "--data", filepath.Join(dir, "data"), "--listen", "unix:"+path)
	c.Stderr = &log
	start(t, c)
	waitFor(t, path)
	hold(t, "unix:"+path, nil)
	end(t, c)
	if text := log.String(); strings.Contains(text, "WARN") || !strings.Contains(text, "tick=2s") || !strings.Contains(text, "initLimit has no effect") {
		t.Errorf("logged\n%s", text)
	}
}
