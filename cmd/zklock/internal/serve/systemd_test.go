//go:build unix

package serve

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock/zkserver"
)

// TestMain is also the child process of TestSockets, which prints the sockets that it got.
func TestMain(m *testing.M) {
	if os.Getenv("ZKLOCK_TEST_SOCKETS") == "" {
		os.Exit(m.Run())
	}
	if os.Getenv("LISTEN_PID") == "own" {
		os.Setenv("LISTEN_PID", strconv.Itoa(os.Getpid()))
	}
	sockets, err := Sockets()
	fmt.Println(err)
	for _, s := range sockets {
		fmt.Println(s.Name, s.Addr())
	}
	again, err := Sockets()
	fmt.Println(len(again), err, os.Getenv("LISTEN_FDS") == "")
	os.Exit(0)
}

func TestSockets(t *testing.T) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	path := filepath.Join(t.TempDir(), "s")
	local, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	tcpFile, err := tcp.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer tcpFile.Close()
	localFile, err := local.(*net.UnixListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer localFile.Close()
	plain, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()

	for _, tt := range []struct {
		name  string
		env   []string
		files []*os.File
		want  string
	}{
		{"two with names", []string{"LISTEN_PID=own", "LISTEN_FDS=2", "LISTEN_FDNAMES=client:tls"}, []*os.File{tcpFile, localFile},
			fmt.Sprintf("<nil>\nclient %v\ntls %s\n0 <nil> true\n", tcp.Addr(), path)},
		{"without names", []string{"LISTEN_PID=own", "LISTEN_FDS=1"}, []*os.File{tcpFile}, fmt.Sprintf("<nil>\nunknown %v\n0 <nil> true\n", tcp.Addr())},
		{"fewer names", []string{"LISTEN_PID=own", "LISTEN_FDS=2", "LISTEN_FDNAMES=:"}, []*os.File{tcpFile, localFile},
			fmt.Sprintf("<nil>\nunknown %v\nunknown %s\n0 <nil> true\n", tcp.Addr(), path)},
		{"none", nil, nil, "<nil>\n0 <nil> true\n"},
		{"of another process", []string{"LISTEN_PID=1", "LISTEN_FDS=1"}, []*os.File{tcpFile}, "<nil>\n0 <nil> true\n"},
		{"no number", []string{"LISTEN_PID=own", "LISTEN_FDS=many"}, nil, "LISTEN_FDS is \"many\""},
		{"too many", []string{"LISTEN_PID=own", "LISTEN_FDS=100000"}, nil, "want a number up to"},
		{"a file", []string{"LISTEN_PID=own", "LISTEN_FDS=1"}, []*os.File{plain}, "not a listening stream socket"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := exec.Command(os.Args[0])
			c.Env = append(os.Environ(), "ZKLOCK_TEST_SOCKETS=1")
			c.Env = append(c.Env, tt.env...)
			c.ExtraFiles = tt.files
			out, err := c.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if exact := strings.HasPrefix(tt.want, "<nil>"); exact && string(out) != tt.want || !bytes.Contains(out, []byte(tt.want)) {
				t.Errorf("got\n%swant\n%s", out, tt.want)
			}
		})
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the socket of another was taken away: %v", err)
	}
}

func TestNotify(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	if err := Notify(Ready); err != nil {
		t.Errorf("without a service manager: %v", err)
	}
	for _, name := range []string{filepath.Join(t.TempDir(), "n"), fmt.Sprintf("@zklock-test-%d", os.Getpid())} {
		conn, err := net.ListenPacket("unixgram", name)
		if err != nil {
			if strings.HasPrefix(name, "@") {
				continue // only Linux has abstract sockets
			}
			t.Fatal(err)
		}
		defer conn.Close()
		t.Setenv("NOTIFY_SOCKET", name)
		for _, word := range []string{Ready, Alive, Stopping} {
			if err := Notify(word); err != nil {
				t.Fatal(err)
			}
			buf := make([]byte, 100)
			if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			n, _, err := conn.ReadFrom(buf)
			if err != nil || string(buf[:n]) != word {
				t.Errorf("%q, %v, want %q", buf[:n], err, word)
			}
		}
	}
	t.Setenv("NOTIFY_SOCKET", "relative")
	if err := Notify(Ready); err == nil {
		t.Error("a relative path was taken")
	}
	t.Setenv("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "none"))
	if err := Notify(Ready); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a socket that is not there: %v", err)
	}
}

func TestWatchdog(t *testing.T) {
	own := strconv.Itoa(os.Getpid())
	for _, tt := range []struct {
		usec, pid string
		want      time.Duration
	}{
		{"", "", 0}, {"30000000", "", 15 * time.Second}, {"30000000", own, 15 * time.Second}, {"30000000", "1", 0}, {"-1", "", 0}, {"x", "", 0}, {"99999999999999999", "", 0},
	} {
		t.Setenv("WATCHDOG_USEC", tt.usec)
		t.Setenv("WATCHDOG_PID", tt.pid)
		if got := Watchdog(); got != tt.want {
			t.Errorf("%+v: %v", tt, got)
		}
	}
}

// TestEverySocketForMetricsIsServed: one socket unit can have several addresses, which then have
// the same name.
func TestEverySocketForMetricsIsServed(t *testing.T) {
	server, err := zkserver.New(&zkserver.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	p := &plan{log: slog.New(slog.DiscardHandler)}
	for range 2 {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		p.sockets = append(p.sockets, Socket{Name: socketMetrics, Listener: ln})
	}
	r := &running{plan: p, server: server, signals: make(chan os.Signal, 1)}
	listeners, pages, err := p.listeners(nil)
	if err != nil {
		t.Fatal(err)
	}
	r.begin(listeners, pages)
	client := http.Client{Timeout: time.Minute}
	for _, s := range p.sockets {
		answer, err := client.Get("http://" + s.Addr().String() + "/metrics")
		if err != nil {
			t.Error(err)
			continue
		}
		answer.Body.Close()
	}
	r.signals <- os.Interrupt
	if err := r.wait(); err != nil {
		t.Error(err)
	}
}
