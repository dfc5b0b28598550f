//go:build unix

package zkserver

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// limitedEnv names the data directory of the child process that has few descriptors.
const limitedEnv = "ZKLOCK_TEST_FEW_DESCRIPTORS_DIR"

// descriptorLimit is the limit of open files of the child process.
const descriptorLimit = 128

// TestServeWithFewDescriptors is the child process. It prints its address. On commands it takes
// all free descriptors or releases them, until its standard input ends. Without the variable,
// the test is skipped.
func TestServeWithFewDescriptors(t *testing.T) {
	dir := os.Getenv(limitedEnv)
	if dir == "" {
		t.Skip("runs as the child of the tests below")
	}
	limit := syscall.Rlimit{Cur: descriptorLimit, Max: descriptorLimit}
	must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
	s, err := New(&Options{
		DataDir: dir, MaxClientConns: -1, SnapshotRecords: 100, segmentBytes: 4000,
		MaxSessionTimeout: time.Hour, Logger: logTo(os.Stderr),
	})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(listenTCP(t, s))
	var taken []*os.File
	for commands := bufio.NewScanner(os.Stdin); commands.Scan(); {
		switch commands.Text() {
		case "take":
			for f, err := os.Open(os.DevNull); err == nil; f, err = os.Open(os.DevNull) {
				taken = append(taken, f)
			}
		case "release":
			for _, f := range taken {
				f.Close()
			}
		}
		fmt.Println("done")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// limitedServer is a server in a process with few descriptors.
type limitedServer struct {
	t      *testing.T
	dir    string
	addr   string
	stdin  io.Writer
	stdout *bufio.Scanner
	log    strings.Builder // read it after the process has ended
	stop   func()
}

// startLimited starts a limitedServer, which ends with the test at the latest.
func startLimited(t *testing.T) *limitedServer {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Skip(err)
	}
	f := &limitedServer{t: t, dir: t.TempDir()}
	cmd := exec.Command(exe, "-test.run=^TestServeWithFewDescriptors$")
	cmd.Env = append(os.Environ(), limitedEnv+"="+f.dir)
	cmd.Stderr = &f.log
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	must(t, cmd.Start())
	ended := false
	f.stop = func() {
		if ended {
			return
		}
		ended = true
		stdin.Close() // ends the process
		for f.stdout.Scan() {
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("the server: %v\n%s", err, f.log.String())
		}
	}
	f.stdin, f.stdout = stdin, bufio.NewScanner(stdout)
	t.Cleanup(f.stop)
	f.addr = f.readLine()
	return f
}

// readLine reads the next line of the process's output.
func (f *limitedServer) readLine() string {
	f.t.Helper()
	if !f.stdout.Scan() {
		f.t.Fatal("the server ended")
	}
	return f.stdout.Text()
}

// command sends a command to the process, and waits until it is done.
func (f *limitedServer) command(order string) {
	f.t.Helper()
	fmt.Fprintln(f.stdin, order)
	if got := f.readLine(); got != "done" {
		f.t.Fatalf("the server says %q", got)
	}
}

// dial connects from the nth loopback address.
func (f *limitedServer) dial(n int) *rawClient {
	f.t.Helper()
	var d net.Dialer
	if runtime.GOOS == "linux" { // all loopback addresses exist there
		d.LocalAddr = &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(1+n%20))}
	}
	nc, err := d.DialContext(f.t.Context(), "tcp", f.addr)
	if err != nil {
		f.t.Fatal(err)
	}
	_ = nc.SetDeadline(time.Now().Add(3 * time.Minute)) // cannot fail on a socket
	return newRawClient(f.t, nc)
}

// files returns the number of files of the data directory whose names begin with prefix.
func (f *limitedServer) files(prefix string) int {
	f.t.Helper()
	names, err := filepath.Glob(filepath.Join(f.dir, prefix+"*"))
	if err != nil {
		f.t.Fatal(err)
	}
	return len(names)
}

// TestConnectionsLeaveDescriptorsForTheLog checks that idle sessions leave the descriptors that
// the log needs for its segments and snapshots.
func TestConnectionsLeaveDescriptorsForTheLog(t *testing.T) {
	f := startLimited(t)
	writer := f.dial(0)
	writer.handshake(wire.ConnectRequest{Timeout: 3_600_000})
	var idle []*rawClient
	refused := 0
	for i := range 2 * descriptorLimit {
		c := f.dial(i)
		switch ok := c.tryHandshake(wire.ConnectRequest{Timeout: 3_600_000}); {
		case ok:
			idle = append(idle, c)
		default:
			refused++
			if _, err := c.nc.Read(make([]byte, 1)); err == nil || os.IsTimeout(err) {
				f.stop()
				t.Fatalf("connection %d was neither served nor refused: %v\n%s", i, err, f.log.String())
			}
		}
	}
	if len(idle) < descriptorLimit/2 || refused < descriptorLimit {
		t.Errorf("%d sessions, %d connections refused", len(idle), refused)
	}
	writer.createWithData("/n", 300)
	if n := f.files("log-"); n < 3 {
		t.Errorf("%d segments", n)
	}
	for _, c := range idle {
		c.nc.Close()
	}
	for end := time.Now().Add(3 * time.Minute); ; {
		c := f.dial(0)
		if c.tryHandshake(wire.ConnectRequest{Timeout: 1000}) {
			break
		}
		if time.Now().After(end) {
			t.Fatal("no session when all others have ended")
		}
	}
	f.stop()
	if f.files("snapshot-") == 0 {
		t.Error("no snapshot")
	}
	if log := f.log.String(); !strings.Contains(log, "limit of open files") || strings.Contains(log, "cannot be written") {
		t.Errorf("the log says %s", log)
	}
}

// TestHalfOpenConnectionsLeaveDescriptorsForTheLog checks the same for connections without a
// handshake. A client that tries again gets a session.
func TestHalfOpenConnectionsLeaveDescriptorsForTheLog(t *testing.T) {
	f := startLimited(t)
	writer := f.dial(0)
	writer.handshake(wire.ConnectRequest{Timeout: 3_600_000})
	for i := range 3 * descriptorLimit {
		f.dial(i)
	}
	for try := 0; !f.dial(try).tryHandshake(wire.ConnectRequest{Timeout: 3_600_000}); try++ {
		if try == 100 {
			t.Error("100 clients got no session while connections without a handshake were open")
			break
		}
	}
	writer.createWithData("/n", 300)
	if n := f.files("log-"); n < 3 {
		t.Errorf("%d segments", n)
	}
	f.stop()
	if f.files("snapshot-") == 0 {
		t.Error("no snapshot")
	}
	for _, text := range []string{"cannot accept", "cannot be written", "want of file descriptors"} {
		if strings.Contains(f.log.String(), text) {
			t.Errorf("the log says %q", text)
		}
	}
}

// TestAcceptResumesWhenDescriptorsAreFree: a process has used all its descriptors. Its server
// continues to serve its connections, and accepts others when descriptors are free.
func TestAcceptResumesWhenDescriptorsAreFree(t *testing.T) {
	f := startLimited(t)
	writer := f.dial(0)
	writer.handshake(wire.ConnectRequest{Timeout: 3_600_000})
	f.command("take")
	waiting := f.dial(0) // the kernel accepts it
	writer.createWithData("/a", 300)
	if n := f.files("log-"); n != 1 {
		t.Errorf("%d segments without a descriptor for them", n)
	}
	f.command("release")
	if !waiting.tryHandshake(wire.ConnectRequest{Timeout: 3_600_000}) {
		t.Error("a connection that had to wait was not served")
	}
	writer.createWithData("/b", 300)
	if n := f.files("log-"); n < 2 {
		t.Errorf("%d segments", n)
	}
	f.stop()
	log := f.log.String()
	if n := strings.Count(log, "cannot accept"); n < 1 || n > 50 {
		t.Errorf("%d lines in the log, want 1 to 50: %s", n, log)
	}
	if strings.Contains(log, "cannot be written") {
		t.Errorf("the log says %s", log)
	}
}
