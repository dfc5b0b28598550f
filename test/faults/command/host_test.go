package command

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/test/harness"
	"github.com/zklock/zklock/zk"
)

// tick is the tick of all servers here. Sessions last at least two ticks.
const tick = 500 * time.Millisecond

// server is a server process.
type server interface {
	Addr() string
	Restart(context.Context) error // after Kill, on the same data
	Kill()
	Stop() error // pauses it
	Cont() error
}

// Host is a server with a client that inspects locks.
type Host struct {
	server
	zk    *zk.Client
	locks *zklock.Client
}

// maker starts a host, which ends with the test.
type maker func(testing.TB) *Host

// embedded starts an embedded server, with its data on disk.
func embedded(t testing.TB) *Host {
	t.Helper()
	s, err := harness.StartEmbedded(harness.EmbeddedConfig{Dir: t.TempDir(), Tick: tick}, filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	return newHost(t, s)
}

// zooKeeper starts a server of Apache ZooKeeper.
func zooKeeper(t testing.TB) *Host {
	t.Helper()
	return newHost(t, harness.StartServer(t, harness.ServerConfig{TickTime: tick}))
}

// newHost connects the client. It must not be used while the server is down.
func newHost(t testing.TB, s server) *Host {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := zk.Dial(ctx, s.Addr(), &zk.Options{SessionTimeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	h := &Host{server: s, zk: c, locks: zklock.New(c, nil)}
	t.Cleanup(func() {
		_ = h.locks.Close() // the server may be down
		_ = c.Close()
	})
	return h
}

// wrapper is a `zklock run` process.
type wrapper struct {
	proc *harness.Process
	base string // of the names of its output files
}

// startWrapper starts the command. Its output and its status line go to files.
func startWrapper(base, bin string, env []string, args ...string) (*wrapper, error) {
	cmd := newCommand(bin, env, args...)
	var files []*os.File
	for _, suffix := range []string{".out", ".err", ".status"} {
		f, err := os.Create(base + suffix)
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }() // the wrapper has its own
		files = append(files, f)
	}
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = files[0], files[1], files[2:]
	proc, err := harness.Start(cmd)
	if err != nil {
		return nil, err
	}
	return &wrapper{proc: proc, base: base}, nil
}

// text returns the current content of one of the wrapper's files.
func (w *wrapper) text(suffix string) string {
	b, err := os.ReadFile(w.base + suffix)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// exit waits for the end of the wrapper, and returns the exit code of a shell.
func (w *wrapper) exit() int {
	var e interface{ Sys() any }
	err := w.proc.Wait()
	if err == nil {
		return 0
	}
	if !errors.As(err, &e) {
		return -1
	}
	status, ok := e.Sys().(syscall.WaitStatus)
	switch {
	case !ok:
		return -1
	case status.Signaled():
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

// lost reports whether the wrapper's exit code and status line say that the lock was lost.
func (w *wrapper) lost() bool {
	return w.exit() == exitLost && strings.Contains(w.text(".status"), `"outcome":"lost","exit":120`)
}
