package storm

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zklock/zklock/test/durable"
	"github.com/zklock/zklock/test/zkreal"
)

// tick is that of all servers here.
const tick = 250 * time.Millisecond

// sessionTimeout is that of all workers. Twice as long a waiter may wait once all
// is healed; a session that has to expire first takes it once, and two ticks.
const sessionTimeout = 6 * tick

// Server is what a storm rages over: a server in a process of its own.
type Server struct {
	Name    string
	Addr    string
	Timeout time.Duration // of sessions
	Pid     func() int
	Signal  func(syscall.Signal) error
	// Restart kills the server, if it runs, and returns when it serves again.
	Restart func(context.Context) error
	// Log is the end of what it has said.
	Log func() string
	// Disk is the small file system with its data; empty if it has none of its own.
	Disk string
}

// Embedded starts an embedded server, which the test's end kills. Where this
// process may mount one, its data are on a small file system.
func Embedded(tb testing.TB) *Server {
	tb.Helper()
	port, err := zkreal.FreePort()
	if err != nil {
		tb.Fatal(err)
	}
	disk := smallDisk(tb, "48m")
	dir := disk
	if dir == "" {
		dir = tb.TempDir()
	}
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	s, err := durable.Start(durable.Config{
		Dir: filepath.Join(dir, "data"), Network: "tcp", Address: addr, Tick: tick, SnapshotRecords: 5000,
	}, filepath.Join(tb.TempDir(), "log"))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Kill)
	return &Server{
		Name: "embedded", Addr: addr, Timeout: sessionTimeout, Pid: s.Pid, Disk: disk, Log: s.LogTail,
		Signal:  func(sig syscall.Signal) error { return s.Signal(sig) },
		Restart: func(context.Context) error { return s.Restart() },
	}
}

// Java starts an Apache ZooKeeper, which the test's end kills.
func Java(tb testing.TB) *Server {
	tb.Helper()
	n := zkreal.Standalone(tb, zkreal.Config{TickTime: tick})
	return &Server{
		Name: "java", Addr: n.Addr(), Timeout: sessionTimeout, Pid: n.Pid, Restart: n.Restart, Log: n.LogTail,
		Signal: func(sig syscall.Signal) error {
			if sig == syscall.SIGSTOP {
				return n.Stop()
			}
			return n.Cont()
		},
	}
}

// smallDisk is a file system of this size, gone with the test, or empty where it
// can't be made.
func smallDisk(tb testing.TB, size string) string {
	tb.Helper()
	if os.Geteuid() != 0 {
		tb.Log("*** no full disks: mounting a small file system needs root")
		return ""
	}
	dir := tb.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		tb.Logf("*** no full disks: root, but may not mount: %v", err)
		return ""
	}
	tb.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			tb.Error(err)
		}
	})
	return dir
}

// ballast is the file that fills a small disk.
func (s *Server) ballast() string { return filepath.Join(s.Disk, "ballast") }

// fillDisk leaves no byte free.
func (s *Server) fillDisk() error {
	f, err := os.OpenFile(s.ballast(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	for chunk := make([]byte, 1<<16); err == nil; {
		_, err = f.Write(chunk)
	}
	if errors.Is(err, syscall.ENOSPC) {
		err = nil
	}
	return errors.Join(err, f.Close())
}

// emptyDisk makes room again.
func (s *Server) emptyDisk() error { return os.Remove(s.ballast()) }

// noticed reports whether the server has said that its disk is full since it had
// said so much.
func (s *Server) noticed(before string) bool {
	const words = "no space left on device"
	log := s.Log()
	// The end of the log moves on; what was said before is not said again.
	if i := strings.LastIndex(log, words); i >= 0 {
		return !strings.Contains(before, log[max(0, i-60):i])
	}
	return false
}
