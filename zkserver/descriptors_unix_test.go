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

// fewEnv names the data directory in the process that has few descriptors.
const fewEnv = "ZKLOCK_TEST_FEW_DESCRIPTORS_DIR"

// fewDescriptors is how many that process may have.
const fewDescriptors = 128

// TestServeWithFewDescriptors is that process: it says where it listens, and takes all
// descriptors there are or gives them back as it is told, until nobody tells it more.
// Without the variable it is no test.
func TestServeWithFewDescriptors(t *testing.T) {
	dir := os.Getenv(fewEnv)
	if dir == "" {
		t.Skip("runs as the child of the tests below")
	}
	limit := syscall.Rlimit{Cur: fewDescriptors, Max: fewDescriptors}
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
	for orders := bufio.NewScanner(os.Stdin); orders.Scan(); {
		switch orders.Text() {
		case "take":
			for f, err := os.Open(os.DevNull); err == nil; f, err = os.Open(os.DevNull) {
				taken = append(taken, f)
			}
		case "give":
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

// fewServer is a server in a process with few descriptors.
type fewServer struct {
	t      *testing.T
	dir    string
	addr   string
	orders io.Writer
	words  *bufio.Scanner
	log    strings.Builder // to be read when the process has ended
	end    func()
}

// startFew starts one, which ends with the test or before.
func startFew(t *testing.T) *fewServer {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Skip(err)
	}
	f := &fewServer{t: t, dir: t.TempDir()}
	cmd := exec.Command(exe, "-test.run=^TestServeWithFewDescriptors$")
	cmd.Env = append(os.Environ(), fewEnv+"="+f.dir)
	cmd.Stderr = &f.log
	orders, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	must(t, cmd.Start())
	ended := false
	f.end = func() {
		if ended {
			return
		}
		ended = true
		orders.Close() // which ends it
		for f.words.Scan() {
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("the server: %v\n%s", err, f.log.String())
		}
	}
	f.orders, f.words = orders, bufio.NewScanner(out)
	t.Cleanup(f.end)
	f.addr = f.word()
	return f
}

// word reads the next line of the process's output.
func (f *fewServer) word() string {
	f.t.Helper()
	if !f.words.Scan() {
		f.t.Fatal("the server ended")
	}
	return f.words.Text()
}

// tell sends a command to the process.
func (f *fewServer) tell(order string) {
	f.t.Helper()
	fmt.Fprintln(f.orders, order)
	if got := f.word(); got != "done" {
		f.t.Fatalf("the server says %q", got)
	}
}

// dial connects from the nth address of the loopback.
func (f *fewServer) dial(n int) *rawClient {
	f.t.Helper()
	var d net.Dialer
	if runtime.GOOS == "linux" { // which has all of them
		d.LocalAddr = &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(1+n%20))}
	}
	nc, err := d.DialContext(f.t.Context(), "tcp", f.addr)
	if err != nil {
		f.t.Fatal(err)
	}
	_ = nc.SetDeadline(time.Now().Add(3 * time.Minute)) // a socket has deadlines
	return over(f.t, nc)
}

// files counts the files of the data directory whose names begin with prefix.
func (f *fewServer) files(prefix string) int {
	f.t.Helper()
	names, err := filepath.Glob(filepath.Join(f.dir, prefix+"*"))
	if err != nil {
		f.t.Fatal(err)
	}
	return len(names)
}

// TestConnectionsLeaveDescriptorsForTheLog: sessions that do nothing take no more
// descriptors than the log can spare for its segments and snapshots.
func TestConnectionsLeaveDescriptorsForTheLog(t *testing.T) {
	f := startFew(t)
	writer := f.dial(0)
	writer.handshake(wire.ConnectRequest{Timeout: 3_600_000})
	var idle []*rawClient
	refused := 0
	for i := range 2 * fewDescriptors {
		c := f.dial(i)
		switch ok := c.tryHandshake(wire.ConnectRequest{Timeout: 3_600_000}); {
		case ok:
			idle = append(idle, c)
		default:
			refused++
			if _, err := c.nc.Read(make([]byte, 1)); err == nil || os.IsTimeout(err) {
				f.end()
				t.Fatalf("connection %d was neither served nor refused: %v\n%s", i, err, f.log.String())
			}
		}
	}
	if len(idle) < fewDescriptors/2 || refused < fewDescriptors {
		t.Errorf("%d sessions, %d connections refused", len(idle), refused)
	}
	writer.fill("/n", 300)
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
	f.end()
	if f.files("snapshot-") == 0 {
		t.Error("no snapshot")
	}
	if log := f.log.String(); !strings.Contains(log, "limit of open files") || strings.Contains(log, "cannot be written") {
		t.Errorf("the log says %s", log)
	}
}

// TestHalfOpenConnectionsLeaveDescriptorsForTheLog: connections without a handshake take
// no reserved descriptor either, although new ones replace them, and a client that tries
// again gets a session.
func TestHalfOpenConnectionsLeaveDescriptorsForTheLog(t *testing.T) {
	f := startFew(t)
	writer := f.dial(0)
	writer.handshake(wire.ConnectRequest{Timeout: 3_600_000})
	for i := range 3 * fewDescriptors {
		f.dial(i)
	}
	for try := 0; !f.dial(try).tryHandshake(wire.ConnectRequest{Timeout: 3_600_000}); try++ {
		if try == 100 {
			t.Error("100 clients got no session while connections without a handshake were open")
			break
		}
	}
	writer.fill("/n", 300)
	if n := f.files("log-"); n < 3 {
		t.Errorf("%d segments", n)
	}
	f.end()
	if f.files("snapshot-") == 0 {
		t.Error("no snapshot")
	}
	for _, text := range []string{"cannot accept", "cannot be written", "want of file descriptors"} {
		if strings.Contains(f.log.String(), text) {
			t.Errorf("the log says %q", text)
		}
	}
}

// TestAcceptResumesWhenDescriptorsAreFree: a server in a program that has used up its descriptors
// serves the connections that it has, and accepts again when there are some.
func TestAcceptResumesWhenDescriptorsAreFree(t *testing.T) {
	f := startFew(t)
	writer := f.dial(0)
	writer.handshake(wire.ConnectRequest{Timeout: 3_600_000})
	f.tell("take")
	waiting := f.dial(0) // by the kernel's leave
	writer.fill("/a", 300)
	if n := f.files("log-"); n != 1 {
		t.Errorf("%d segments without a descriptor for them", n)
	}
	f.tell("give")
	if !waiting.tryHandshake(wire.ConnectRequest{Timeout: 3_600_000}) {
		t.Error("a connection that had to wait was not served")
	}
	writer.fill("/b", 300)
	if n := f.files("log-"); n < 2 {
		t.Errorf("%d segments", n)
	}
	f.end()
	log := f.log.String()
	if n := strings.Count(log, "cannot accept"); n < 1 || n > 50 {
		t.Errorf("%d words on it in the log: %s", n, log)
	}
	if strings.Contains(log, "cannot be written") {
		t.Errorf("the log says %s", log)
	}
}
