package delivery

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zklock/zklock/internal/testcert"
	"github.com/zklock/zklock/test/harness"
	"github.com/zklock/zklock/zk"
)

// exposures are the limits of systemd-analyze security for each packaged unit, in tenths of a
// point. The units need the network, and commands of users need more.
var exposures = map[string]string{
	"zklock-server.service": "15", "zklock-ui.service": "15", "zklock-run@.service": "20", "zklock-once@.service": "20",
	"zklock-server.socket": "", "zklock-once@.timer": "",
}

// lookPath returns the path of a program, and skips or fails the test without it.
func lookPath(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		harness.SkipOrFail(t, program+" is not installed")
	}
	return path
}

// units copies the packaged units to a directory, with a program that exists.
func units(t *testing.T) (dir string, names []string) {
	t.Helper()
	dir = t.TempDir()
	files, err := os.ReadDir("../../packaging/systemd")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		b, err := os.ReadFile(filepath.Join("../../packaging/systemd", file.Name()))
		if err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(string(b), "/usr/bin/zklock", "/bin/true")
		if err := os.WriteFile(filepath.Join(dir, file.Name()), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		names = append(names, file.Name())
	}
	return dir, names
}

func TestSystemdUnitsVerify(t *testing.T) {
	analyze := lookPath(t, "systemd-analyze")
	dir, names := units(t)
	for _, name := range names {
		path := filepath.Join(dir, name)
		// verify prints what it ignores, and exits with 0.
		if out, err := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", path).CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("systemd-analyze verify %s: %v\n%s", name, err, out)
		}
		threshold, known := exposures[name]
		if !known {
			t.Errorf("%s has no limit of exposure", name)
		}
		if threshold == "" {
			continue
		}
		if out, err := exec.CommandContext(t.Context(), analyze, "security", "--offline=true", "--threshold="+threshold, path).CombinedOutput(); err != nil {
			t.Errorf("systemd-analyze security %s: %v\n%s", name, err, out)
		}
	}
}

// TestSocketActivation has systemd-socket-activate start the command at the first connection,
// like the socket unit.
func TestSocketActivation(t *testing.T) {
	activate := lookPath(t, "systemd-socket-activate")
	bin, dir := harness.Command(t), t.TempDir()
	path := filepath.Join(dir, "s")
	c := exec.Command(activate, "--listen="+path, "--fdname=client", bin, "serve", "--memory", "--listen", "127.0.0.1:1")
	stdout, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	start(t, c)
	waitForSocket(t, path)
	createEphemeral(t, "unix:"+path, nil)
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil || line != "serving at unix:"+path+"\n" {
		t.Errorf("the server printed %q, %v: want only the socket that was passed", line, err)
	}
	terminate(t, c)
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the server removed the socket of the service manager: %v", err)
	}
}

// listenFile listens on the loopback interface, and returns the address and the socket.
func listenFile(t *testing.T) (addr string, file *os.File) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	if file, err = ln.(*net.TCPListener).File(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return ln.Addr().String(), file
}

// serveSockets returns zklock serve with sockets that it inherits as from systemd. Colons
// separate the sockets' names. The shell knows the process id, and becomes the command.
func serveSockets(t *testing.T, names string, files []*os.File, args ...string) *exec.Cmd {
	t.Helper()
	script := fmt.Sprintf(`LISTEN_PID=$$ LISTEN_FDS=%d LISTEN_FDNAMES=%s exec "$0" serve "$@"`, len(files), names)
	c := exec.Command("sh", append([]string{"-c", script, harness.Command(t)}, args...)...)
	c.ExtraFiles = files
	return c
}

// TestPassedSocketAndNotifications passes a socket as systemd does, and receives the
// notifications.
func TestPassedSocketAndNotifications(t *testing.T) {
	dir := t.TempDir()
	notify, err := net.ListenPacket("unixgram", filepath.Join(dir, "notify"))
	if err != nil {
		t.Fatal(err)
	}
	defer notify.Close()
	addr, file := listenFile(t)
	c := serveSockets(t, "client", []*os.File{file}, "--data", filepath.Join(dir, "data"))
	c.Env = append(os.Environ(), "NOTIFY_SOCKET="+notify.LocalAddr().String(), "WATCHDOG_USEC=200000")
	start(t, c)
	receive := func() string {
		t.Helper()
		buf := make([]byte, 100)
		if err := notify.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		n, _, err := notify.ReadFrom(buf)
		if err != nil {
			t.Fatal(err)
		}
		return string(buf[:n])
	}
	if message := receive(); message != "READY=1" {
		t.Errorf("received %q, want READY=1", message)
	}
	if message := receive(); message != "WATCHDOG=1" {
		t.Errorf("received %q, want WATCHDOG=1", message)
	}
	createEphemeral(t, addr, nil)
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	message := receive()
	for message == "WATCHDOG=1" {
		message = receive()
	}
	if message != "STOPPING=1" {
		t.Errorf("received %q, want STOPPING=1", message)
	}
	if err := c.Wait(); err != nil {
		t.Errorf("the server ended with %v", err)
	}
}

// TestPassedSocketsAreUsedByName passes three sockets. Two have names that select a protocol.
func TestPassedSocketsAreUsedByName(t *testing.T) {
	ca := testcert.New(t, "ca")
	cert := testcert.Write(t, t.TempDir(), "server.pem", ca.Server("127.0.0.1").Both())[0]
	plain, plainFile := listenFile(t)
	secure, secureFile := listenFile(t)
	page, pageFile := listenFile(t)
	// The socket takes precedence over the address of --metrics.
	c := serveSockets(t, "metrics:unheard:tls", []*os.File{pageFile, plainFile, secureFile}, "--memory", "--tls-cert", cert, "--metrics", "127.0.0.1:1")
	start(t, c)
	createEphemeral(t, plain, nil)
	createEphemeral(t, secure, &tls.Config{RootCAs: ca.Pool()})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+page+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(body), "\nglobal_sessions 2\n") {
		t.Errorf("the metrics: %v\n%s", err, body)
	}
	terminate(t, c)
}

func TestPassedTLSSocketNeedsCertificate(t *testing.T) {
	_, file := listenFile(t)
	out, err := serveSockets(t, "tls", []*os.File{file}, "--memory").CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 2 || !strings.Contains(string(out), "--tls-cert") {
		t.Errorf("%v\n%s", err, out)
	}
}

// start starts a command, and kills it when the test ends.
func start(t *testing.T, c *exec.Cmd) {
	t.Helper()
	if c.Stderr == nil {
		c.Stderr = t.Output()
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill() })
}

// terminate sends SIGTERM, after which the command must succeed.
func terminate(t *testing.T, c *exec.Cmd) {
	t.Helper()
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Errorf("the server ended with %v", err)
	}
}

// waitForSocket waits until a socket exists, without connecting.
func waitForSocket(t *testing.T, path string) {
	t.Helper()
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	limit := time.After(patience)
	for {
		if _, err := os.Stat(path); err == nil {
			return
		}
		select {
		case <-poll.C:
		case <-limit:
			t.Fatalf("%s does not exist", path)
		}
	}
}

// createEphemeral creates an ephemeral znode at a server.
func createEphemeral(t *testing.T, servers string, config *tls.Config) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := zk.Dial(ctx, servers, &zk.Options{TLS: config})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, _, err := c.Create(ctx, "/held-", nil, nil, zk.ModeEphemeralSequential); err != nil {
		t.Fatal(err)
	}
}
