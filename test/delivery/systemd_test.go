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

// exposures are the packaged units with the most that systemd-analyze may find in each, in
// tenths of points of ten. What is left is the network and, for commands of users, what
// many of them need.
var exposures = map[string]string{
	"zklock-server.service": "15", "zklock-ui.service": "15", "zklock-run@.service": "20", "zklock-once@.service": "20",
	"zklock-server.socket": "", "zklock-once@.timer": "",
}

// need skips or fails without a program.
func need(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		harness.SkipOrFail(t, program+" is not installed")
	}
	return path
}

// units copies the units to a directory, with a program that is there.
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
	analyze := need(t, "systemd-analyze")
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

// TestSocketActivation has systemd's own tool hold the port and start the
// command at the first connection, as the socket unit does.
func TestSocketActivation(t *testing.T) {
	activate := need(t, "systemd-socket-activate")
	bin, dir := harness.Command(t), t.TempDir()
	path := filepath.Join(dir, "s")
	c := exec.Command(activate, "--listen="+path, "--fdname=client", bin, "serve", "--memory", "--listen", "127.0.0.1:1")
	words, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	start(t, c)
	waitFor(t, path)
	hold(t, "unix:"+path, nil)
	line, err := bufio.NewReader(words).ReadString('\n')
	if err != nil || line != "serving at unix:"+path+"\n" {
		t.Errorf("it said %q, %v: want the socket that was handed over, and no other", line, err)
	}
	end(t, c)
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the socket of the service manager was taken away: %v", err)
	}
}

// handedPort is a port of the loopback that is handed over.
func handedPort(t *testing.T) (addr string, file *os.File) {
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

// handed is the command with sockets handed over as systemd does, under names
// that are separated by colons. The shell becomes the command, whose process id
// it knows.
func handed(t *testing.T, names string, files []*os.File, args ...string) *exec.Cmd {
	t.Helper()
	script := fmt.Sprintf(`LISTEN_PID=$$ LISTEN_FDS=%d LISTEN_FDNAMES=%s exec "$0" serve "$@"`, len(files), names)
	c := exec.Command("sh", append([]string{"-c", script, harness.Command(t)}, args...)...)
	c.ExtraFiles = files
	return c
}

// TestNotifyAndHandedPort hands a port over as systemd does and listens to what
// is notified.
func TestNotifyAndHandedPort(t *testing.T) {
	dir := t.TempDir()
	notify, err := net.ListenPacket("unixgram", filepath.Join(dir, "notify"))
	if err != nil {
		t.Fatal(err)
	}
	defer notify.Close()
	addr, file := handedPort(t)
	c := handed(t, "client", []*os.File{file}, "--data", filepath.Join(dir, "data"))
	c.Env = append(os.Environ(), "NOTIFY_SOCKET="+notify.LocalAddr().String(), "WATCHDOG_USEC=200000")
	start(t, c)
	heard := func() string {
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
	if word := heard(); word != "READY=1" {
		t.Errorf("first %q was notified", word)
	}
	if word := heard(); word != "WATCHDOG=1" {
		t.Errorf("then %q was notified", word)
	}
	hold(t, addr, nil)
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	word := heard()
	for word == "WATCHDOG=1" {
		word = heard()
	}
	if word != "STOPPING=1" {
		t.Errorf("at the end %q was notified", word)
	}
	if err := c.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// TestSocketsByName hands three over, of which two have names with a meaning.
func TestSocketsByName(t *testing.T) {
	ca := testcert.New(t, "ca")
	cert := testcert.Write(t, t.TempDir(), "server.pem", ca.Server("127.0.0.1").Both())[0]
	plain, plainFile := handedPort(t)
	secure, secureFile := handedPort(t)
	page, pageFile := handedPort(t)
	// The metrics go to the socket rather than to the port of the flag.
	c := handed(t, "metrics:unheard:tls", []*os.File{pageFile, plainFile, secureFile}, "--memory", "--tls-cert", cert, "--metrics", "127.0.0.1:1")
	start(t, c)
	hold(t, plain, nil)
	hold(t, secure, &tls.Config{RootCAs: ca.Pool()})
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
	end(t, c)
}

// TestSocketForTLSWithoutCertificate: it is refused rather than left to fail at
// each client.
func TestSocketForTLSWithoutCertificate(t *testing.T) {
	_, file := handedPort(t)
	out, err := handed(t, "tls", []*os.File{file}, "--memory").CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 2 || !strings.Contains(string(out), "--tls-cert") {
		t.Errorf("%v\n%s", err, out)
	}
}

// start starts a command that the test's end kills if it is still there.
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

// end ends a command and waits for it.
func end(t *testing.T, c *exec.Cmd) {
	t.Helper()
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// waitFor waits until something listens at a socket, without connecting.
func waitFor(t *testing.T, path string) {
	t.Helper()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	limit := time.After(patience)
	for {
		if _, err := os.Stat(path); err == nil {
			return
		}
		select {
		case <-look.C:
		case <-limit:
			t.Fatalf("%s never was there", path)
		}
	}
}

// hold makes an ephemeral node at a server, as a lock does.
func hold(t *testing.T, servers string, config *tls.Config) {
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
