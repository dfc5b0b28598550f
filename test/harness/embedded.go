package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/zklock/zklock/zkserver"
)

// embeddedWait limits the time until a server listens. An idle machine needs about 20 ms.
const embeddedWait = 5 * time.Minute

// ErrNotStarted reports that a server ended before it listened. The text of the error contains
// the end of the server's log.
var ErrNotStarted = errors.New("harness: the server ended before it listened")

// EmbeddedConfig configures an embedded server. The process gets it as JSON.
type EmbeddedConfig struct {
	// Dir is the data directory. Empty keeps everything in memory.
	Dir string
	// Network and Address are arguments of net.Listen. A restart uses the same address, so a
	// TCP port must not be 0. Empty means a free TCP port of the loopback interface.
	Network, Address string
	// Tick is the server's tick. 0 means 2 s.
	Tick time.Duration
	// SnapshotRecords is the number of records between snapshots. 0 means 100,000.
	SnapshotRecords int
}

// Embedded is an embedded server in a child process. Any goroutine may call its methods, but
// only one at a time may start or end the server.
type Embedded struct {
	cfg EmbeddedConfig
	log string // path of the file with the output of all runs

	mu   sync.Mutex // guards proc; never held across a wait
	proc *Process
}

// StartEmbedded starts an embedded server in a child process, and returns when the server
// listens. The child runs this test binary, so the package's TestMain must call [Main]. The
// server appends its output to the file log. The caller ends the server by Kill.
func StartEmbedded(cfg EmbeddedConfig, log string) (*Embedded, error) {
	if cfg.Network == "" {
		port, err := FreePort()
		if err != nil {
			return nil, err
		}
		cfg.Network, cfg.Address = "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	}
	s := &Embedded{cfg: cfg, log: log}
	return s, s.run()
}

// run starts the process, and waits until it is ready or ends.
func (s *Embedded) run() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	config, err := json.Marshal(s.cfg)
	if err != nil {
		return err
	}
	out, err := os.OpenFile(s.log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }() // the child has its own descriptor
	ready, childEnd, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = ready.Close() }()
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), embeddedEnv+"="+string(config))
	cmd.Stdout, cmd.Stderr = out, out
	cmd.ExtraFiles = []*os.File{childEnd}
	proc, err := Start(cmd)
	_ = childEnd.Close() // the pipe must end with the child
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.proc = proc
	s.mu.Unlock()
	if err := ready.SetReadDeadline(time.Now().Add(embeddedWait)); err != nil {
		return err
	}
	message, err := io.ReadAll(ready)
	if err == nil && string(message) == embeddedReady {
		return nil
	}
	if err != nil {
		proc.Kill()
	}
	return fmt.Errorf("%w: %w; its log ends:\n%s", ErrNotStarted, errors.Join(err, proc.Wait()), s.LogTail())
}

func (s *Embedded) process() *Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proc
}

// Kill ends the server by SIGKILL and waits for its end. It does nothing if the server
// has ended.
func (s *Embedded) Kill() { s.process().Kill() }

// Restart kills the server if it runs, and starts it with the same address and directory.
func (s *Embedded) Restart(context.Context) error {
	s.Kill()
	return s.run()
}

// Stop stops the server by SIGSTOP.
func (s *Embedded) Stop() error { return s.process().Signal(syscall.SIGSTOP) }

// Cont continues a stopped server.
func (s *Embedded) Cont() error { return s.process().Signal(syscall.SIGCONT) }

// Addr returns the address on which the server listens.
func (s *Embedded) Addr() string { return s.cfg.Address }

// Done is closed when the server's last run has ended.
func (s *Embedded) Done() <-chan struct{} { return s.process().Done() }

// Pid returns the process id of the server's last run.
func (s *Embedded) Pid() int { return s.process().Pid() }

// LogTail returns the last 4 KiB of the log, for messages.
func (s *Embedded) LogTail() string { return tail(s.log) }

// embeddedEnv is the environment variable with the EmbeddedConfig of a server process.
const embeddedEnv = "ZKLOCK_TEST_SERVER"

// embeddedReady is the message that a server writes to descriptor 3 when it listens.
const embeddedReady = "ready"

// embeddedListenWait bounds the wait for an address that the kernel has not released.
const embeddedListenWait = time.Minute

// runEmbedded runs the server if StartEmbedded started this process. It reports whether it did,
// and the exit code of the process.
func runEmbedded() (code int, is bool) {
	config := os.Getenv(embeddedEnv)
	if config == "" {
		return 0, false
	}
	if err := serveEmbedded(config); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1, true
	}
	return 0, true
}

// serveEmbedded runs a server until it fails or is killed.
func serveEmbedded(config string) error {
	var cfg EmbeddedConfig
	if err := json.Unmarshal([]byte(config), &cfg); err != nil {
		return fmt.Errorf("harness: configuration: %w", err)
	}
	srv, err := zkserver.New(&zkserver.Options{
		DataDir: cfg.Dir, TickTime: cfg.Tick, SnapshotRecords: cfg.SnapshotRecords,
		MaxClientConns: -1,
		Logger:         slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		return err
	}
	ln, err := listenAgain(cfg.Network, cfg.Address)
	if err != nil {
		return errors.Join(err, srv.Close())
	}
	ready := os.NewFile(3, "ready")
	if _, err := ready.WriteString(embeddedReady); err != nil {
		return errors.Join(err, srv.Close())
	}
	if err := ready.Close(); err != nil {
		return errors.Join(err, srv.Close())
	}
	return srv.Serve(ln)
}

// listenAgain listens, and removes the socket file of a killed process before. The lock on the
// data directory proves that no other server uses it.
func listenAgain(network, address string) (net.Listener, error) {
	if network == "unix" {
		if err := os.Remove(address); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
	retry := time.NewTicker(10 * time.Millisecond)
	defer retry.Stop()
	for end := time.Now().Add(embeddedListenWait); ; <-retry.C {
		ln, err := net.Listen(network, address)
		if err == nil || !errors.Is(err, syscall.EADDRINUSE) || time.Now().After(end) {
			return ln, err
		}
	}
}
