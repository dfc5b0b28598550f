package operation

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zklock/zklock/test/zkreal"
	"github.com/zklock/zklock/zk"
)

// exposure is the most that systemd-analyze may find in the unit, in tenths of
// points of ten; what is left is the network that a server is for.
const exposure = "15"

// need skips or fails without a program.
func need(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		zkreal.SkipOrFail(t, program+" is not installed")
	}
	return path
}

// units copies the units to a directory, with a program that is there.
func units(t *testing.T) (service, socket string) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"zklock-server.service", "zklock-server.socket"} {
		b, err := os.ReadFile(filepath.Join("../../packaging/systemd", name))
		if err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(string(b), "/usr/bin/zklock", "/bin/true")
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "zklock-server.service"), filepath.Join(dir, "zklock-server.socket")
}

func TestUnits(t *testing.T) {
	analyze := need(t, "systemd-analyze")
	service, socket := units(t)
	for _, args := range [][]string{
		{"verify", service, socket},
		{"security", "--offline=true", "--threshold=" + exposure, service},
	} {
		out, err := exec.CommandContext(t.Context(), analyze, args...).CombinedOutput()
		if err != nil {
			t.Errorf("systemd-analyze %v: %v\n%s", args, err, out)
		}
		// verify says what it passes over, and ends well.
		if args[0] == "verify" && len(out) > 0 {
			t.Errorf("systemd-analyze verify says\n%s", out)
		}
	}
}

// build builds the command and returns its path.
func build(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "zklock")
	out, err := exec.Command("go", "build", "-o", bin, "github.com/zklock/zklock/cmd/zklock").CombinedOutput()
	if err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return bin
}

// TestSocketActivation has systemd's own tool hold the port and start the
// command at the first connection, as the socket unit does.
func TestSocketActivation(t *testing.T) {
	activate := need(t, "systemd-socket-activate")
	bin, dir := build(t), t.TempDir()
	path := filepath.Join(dir, "s")
	c := exec.Command(activate, "--listen="+path, "--fdname=client", bin, "serve", "--memory", "--listen", "127.0.0.1:1")
	words, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	start(t, c)
	waitFor(t, path)
	hold(t, "unix:"+path)
	line, err := bufio.NewReader(words).ReadString('\n')
	if err != nil || line != "serving at unix:"+path+"\n" {
		t.Errorf("it said %q, %v: want the socket that was handed over, and no other", line, err)
	}
	end(t, c)
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the socket of the service manager was taken away: %v", err)
	}
}

// TestNotifyAndHandedPort hands a port over as systemd does and listens to what
// is notified.
func TestNotifyAndHandedPort(t *testing.T) {
	bin, dir := build(t), t.TempDir()
	notify, err := net.ListenPacket("unixgram", filepath.Join(dir, "notify"))
	if err != nil {
		t.Fatal(err)
	}
	defer notify.Close()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	file, err := ln.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	// The shell becomes the command, whose process id it knows.
	c := exec.Command("sh", "-c", `LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=client exec "$0" serve --data "$1"`, bin, filepath.Join(dir, "data"))
	c.Env = append(os.Environ(), "NOTIFY_SOCKET="+notify.LocalAddr().String(), "WATCHDOG_USEC=200000")
	c.ExtraFiles = []*os.File{file}
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
	hold(t, ln.Addr().String())
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

// TestSecondSignal: the first waits for a client that reads nothing, the second
// does not.
func TestSecondSignal(t *testing.T) {
	bin, dir := build(t), t.TempDir()
	path := filepath.Join(dir, "s")
	c := exec.Command(bin, "serve", "--memory", "--listen", "unix:"+path)
	start(t, c)
	waitFor(t, path)
	hold(t, "unix:"+path)
	for range 2 {
		if err := c.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
	}
	err := c.Wait()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 128+int(syscall.SIGTERM)) {
		t.Errorf("it ended with %v, want 0 where it was quick, or %d", err, 128+int(syscall.SIGTERM))
	}
}

// start starts a command that the test's end kills if it is still there.
func start(t *testing.T, c *exec.Cmd) {
	t.Helper()
	c.Stderr = t.Output()
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
func hold(t *testing.T, servers string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := zk.Dial(ctx, servers, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, _, err := c.Create(ctx, fmt.Sprintf("/held-%d", os.Getpid()), nil, nil, zk.ModeEphemeral); err != nil {
		t.Fatal(err)
	}
}
