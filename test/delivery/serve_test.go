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

// server is a zklock serve that listens on a unix socket.
type server struct {
	*exec.Cmd
	path string
	log  *bufio.Reader
}

// startServer starts a server in memory.
func startServer(t *testing.T, args ...string) *server {
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
	waitForSocket(t, path)
	return s
}

// logged waits for a log line that contains a word.
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

func (s *server) signal(t *testing.T, sig os.Signal) {
	t.Helper()
	if err := s.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// connectBlockedReader connects a client that requests more data than a socket buffers, and
// reads only the first bytes.
func connectBlockedReader(t *testing.T, path string) {
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
	// The reply to the handshake, and the length of the next reply.
	if _, err := io.CopyN(io.Discard, nc, int64(binary.BigEndian.Uint32(head))+4); err != nil {
		t.Fatal(err)
	}
}

// TestSecondSignalEndsShutdown: after the first signal, the server waits for a client that
// does not read its replies.
func TestSecondSignalEndsShutdown(t *testing.T) {
	s := startServer(t)
	connectBlockedReader(t, s.path)
	s.signal(t, syscall.SIGTERM)
	s.logged(t, "msg=stopping")
	s.signal(t, syscall.SIGINT)
	s.logged(t, "a second signal ended the shutdown")
	err := s.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 128+int(syscall.SIGINT) {
		t.Errorf("the server ended with %v, want %d", err, 128+int(syscall.SIGINT))
	}
}

// TestHangUpStopsServerUnlessIgnored checks that a SIGHUP shuts the server down, unless it
// was started by nohup.
func TestHangUpStopsServerUnlessIgnored(t *testing.T) {
	// A child inherits ignored signals.
	own := make(chan os.Signal, 1)
	signal.Notify(own, syscall.SIGHUP)
	s := startServer(t)
	signal.Stop(own)
	s.signal(t, syscall.SIGHUP)
	s.logged(t, `why=hangup`)
	if err := s.Wait(); err != nil {
		t.Errorf("the server ended with %v", err)
	}
	if _, err := os.Stat(s.path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its socket is still there: %v", err)
	}

	signal.Ignore(syscall.SIGHUP) // as nohup does
	s = startServer(t)
	signal.Reset(syscall.SIGHUP)
	s.signal(t, syscall.SIGHUP)
	createEphemeral(t, "unix:"+s.path, nil)
	s.signal(t, syscall.SIGTERM)
	s.logged(t, "why=terminated")
	if err := s.Wait(); err != nil {
		t.Errorf("the server ended with %v", err)
	}
}

// TestServerSurvivesClosedLogPipe checks that the server does not end if the reader of its
// log ends.
func TestServerSurvivesClosedLogPipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "s")
	c := exec.Command(harness.Command(t), "serve", "--memory", "--listen", "unix:"+path)
	c.Stderr = w
	start(t, c)
	w.Close()
	waitForSocket(t, path)
	r.Close()
	createEphemeral(t, "unix:"+path, nil)
	terminate(t, c) // which it logs
}

// TestServeAcceptsZooCfgOfDebian starts a server with the zoo.cfg of Debian's package zookeeper.
func TestServeAcceptsZooCfgOfDebian(t *testing.T) {
	const file = "/etc/zookeeper/conf/zoo.cfg"
	if _, err := os.Stat(file); err != nil {
		harness.SkipOrFail(t, file+" is not there: "+err.Error())
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "s")
	var log strings.Builder
	// The flags override dataDir and clientPort, which belong to Debian's server.
	c := exec.Command(harness.Command(t), "serve", "--config", file, "--data", filepath.Join(dir, "data"), "--listen", "unix:"+path)
	c.Stderr = &log
	start(t, c)
	waitForSocket(t, path)
	createEphemeral(t, "unix:"+path, nil)
	terminate(t, c)
	if text := log.String(); strings.Contains(text, "WARN") || !strings.Contains(text, "tick=2s") || !strings.Contains(text, "initLimit has no effect") {
		t.Errorf("logged\n%s", text)
	}
}
