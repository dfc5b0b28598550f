package harness

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// serverClass also runs a standalone server, if zoo.cfg names no other server.
const serverClass = "org.apache.zookeeper.server.quorum.QuorumPeerMain"

// startTimeout limits the time until the first answer of a server. An idle machine needs one to
// three seconds, and a busy one much more.
const startTimeout = 5 * time.Minute

// stopTimeout limits the time until a stopped process has no running thread.
const stopTimeout = time.Minute

// modeTimeout limits the time until a server reports its role, because a server may be paused.
const modeTimeout = 5 * time.Second

// pollInterval is the time between two requests to a starting server.
const pollInterval = 50 * time.Millisecond

var (
	// ErrNotServing reports that a server does not serve clients now.
	ErrNotServing = errors.New("harness: server is not serving")
	// ErrRunning reports that a server already runs.
	ErrRunning = errors.New("harness: server is running already")
)

// Server is one ZooKeeper server in its own JVM. Any goroutine may call its methods.
type Server struct {
	id         int
	addr       string
	dir        string
	javaFlags  []string
	prefix     []string // command that runs the JVM, such as "ip netns exec"
	quorumPort int

	mu        sync.Mutex // guards the fields below; never held across a wait
	classpath string
	proc      *Process
}

// StartServer starts a standalone server for this test, which the test's cleanup ends. Tests
// without faults or settings use [Shared], which is faster.
func StartServer(tb testing.TB, cfg ServerConfig) *Server {
	tb.Helper()
	needRelease(tb, cfg.Release)
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	n, err := startServer(ctx, cfg, tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(n.Kill)
	return n
}

func startServer(ctx context.Context, cfg ServerConfig, dir string) (*Server, error) {
	port, err := freePorts.take(1)
	if err != nil {
		return nil, err
	}
	n, err := newServer(cfg, 1, dir, "127.0.0.1", port[0], nil)
	if err != nil {
		return nil, err
	}
	if err := n.Start(); err != nil {
		return nil, err
	}
	if err := n.WaitServing(ctx); err != nil {
		n.Kill()
		return nil, err
	}
	return n, nil
}

// newServer writes the files of a server below dir.
func newServer(cfg ServerConfig, id int, dir, host string, port int, members []member) (*Server, error) {
	jars := zookeeperJars(cfg.Release)
	if strings.Contains(cfg.Extra["serverCnxnFactory"], "Netty") {
		// Missing in the manifest of zookeeper.jar.
		jars = append(jars, "netty-codec", "netty-resolver")
	}
	classpath, err := Classpath(jars...)
	if err != nil {
		return nil, err
	}
	n := &Server{
		id: id, addr: net.JoinHostPort(host, strconv.Itoa(port)), dir: dir,
		classpath: classpath, javaFlags: cfg.JavaFlags,
	}
	data := filepath.Join(dir, "data")
	if err := os.MkdirAll(data, 0o700); err != nil {
		return nil, fmt.Errorf("harness: %w", err)
	}
	if err := os.WriteFile(filepath.Join(data, "myid"), []byte(strconv.Itoa(id)), 0o600); err != nil {
		return nil, fmt.Errorf("harness: %w", err)
	}
	text := cfg.file(data, host, port, members)
	if err := os.WriteFile(n.configPath(), []byte(text), 0o600); err != nil {
		return nil, fmt.Errorf("harness: %w", err)
	}
	return n, nil
}

func (n *Server) configPath() string { return filepath.Join(n.dir, "zoo.cfg") }

// ID returns the server's number in its ensemble, from 1. A standalone server has 1.
func (n *Server) ID() int { return n.id }

// Addr returns the host:port for clients, which a restart does not change.
func (n *Server) Addr() string { return n.addr }

// LogPath returns the file with the output of all the server's runs.
func (n *Server) LogPath() string { return filepath.Join(n.dir, "server.log") }

// DataDir returns the server's dataDir.
func (n *Server) DataDir() string { return filepath.Join(n.dir, "data") }

// Pid returns the process id of the JVM, or 0 if it does not run.
func (n *Server) Pid() int {
	if proc := n.running(); proc != nil {
		return proc.Pid()
	}
	return 0
}

// running returns the server's process, or nil if it has ended.
func (n *Server) running() *Process {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.proc == nil {
		return nil
	}
	select {
	case <-n.proc.Done():
		return nil
	default:
		return n.proc
	}
}

// Start starts the JVM, without waiting until it serves. See [Server.WaitServing].
func (n *Server) Start() error {
	if n.running() != nil {
		return ErrRunning
	}
	log, err := os.OpenFile(n.LogPath(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("harness: %w", err)
	}
	defer func() { _ = log.Close() }() // the child has its own descriptor
	java, err := exec.LookPath("java")
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotInstalled, err)
	}
	argv := append([]string{}, n.prefix...)
	argv = append(argv, java)
	argv = append(argv, n.javaFlags...)
	argv = append(argv, JavaFlags()...)
	// Without this property, ZooKeeper 3.4 needs the classes of log4j.
	argv = append(argv, "-Dzookeeper.jmx.log4j.disable=true")
	n.mu.Lock()
	argv = append(argv, "-cp", n.classpath, serverClass, n.configPath())
	n.mu.Unlock()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	proc, err := Start(cmd)
	if err != nil {
		return err
	}
	n.mu.Lock()
	n.proc = proc
	n.mu.Unlock()
	return nil
}

// Kill ends the server by SIGKILL and waits for its end.
func (n *Server) Kill() {
	if proc := n.running(); proc != nil {
		proc.Kill()
	}
}

// Terminate sends SIGTERM, which runs the server's shutdown, and waits for the end. If ctx ends
// first, Terminate kills the server.
func (n *Server) Terminate(ctx context.Context) error {
	proc := n.running()
	if proc == nil {
		return nil
	}
	if err := proc.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, ErrExited) {
		return err
	}
	select {
	case <-proc.Done():
		return nil
	case <-ctx.Done():
		proc.Kill()
		return ctx.Err()
	}
}

// Stop pauses the server by SIGSTOP, so its sockets stay open and silent. It returns when all
// threads have stopped, because a thread may run a little longer on another processor.
func (n *Server) Stop() error {
	if err := n.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	return poll(ctx, nil, pollInterval, func() error { return Stopped(n.Pid()) })
}

// Stopped returns nil if every thread of a process is stopped.
func Stopped(pid int) error {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil || len(threads) == 0 {
		return fmt.Errorf("harness: process %d has no threads: %w", pid, ErrExited)
	}
	for _, file := range threads {
		stat, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		// The state follows the name, which is in parentheses.
		_, state, _ := strings.Cut(string(stat), ") ")
		if !strings.HasPrefix(state, "T") {
			return fmt.Errorf("harness: %s has the state %.1q", file, state)
		}
	}
	return nil
}

// Cont continues a paused server by SIGCONT.
func (n *Server) Cont() error { return n.signal(syscall.SIGCONT) }

func (n *Server) signal(sig syscall.Signal) error {
	proc := n.running()
	if proc == nil {
		return ErrExited
	}
	return proc.Signal(sig)
}

// SetRelease makes the next [Server.Start] start another release of ZooKeeper. Like
// [ZooKeeperClasspath], it skips the test if that is missing.
func (n *Server) SetRelease(tb testing.TB, release string) {
	tb.Helper()
	classpath := ZooKeeperClasspath(tb, release)
	n.mu.Lock()
	n.classpath = classpath
	n.mu.Unlock()
}

// Restart kills the server if it runs, starts it with the same address and data, and waits until
// it serves.
func (n *Server) Restart(ctx context.Context) error {
	n.Kill()
	if err := n.Start(); err != nil {
		return err
	}
	return n.WaitServing(ctx)
}

// Mode returns the server's role: "standalone", "leader", or "follower". It returns
// [ErrNotServing] if the server has no quorum.
func (n *Server) Mode(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, modeTimeout)
	defer cancel()
	answer, err := FourLetter(ctx, n.addr, "srvr")
	if err != nil {
		return "", err
	}
	mode := FourLetterField(answer, "Mode")
	if mode == "" {
		return "", fmt.Errorf("%w: server %d answers %.100q", ErrNotServing, n.id, answer)
	}
	return mode, nil
}

// WaitServing waits until the server serves clients. If the process or ctx ends, or after some
// minutes, it returns an error with the end of the server's log.
func (n *Server) WaitServing(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	n.mu.Lock()
	proc := n.proc
	n.mu.Unlock()
	if proc == nil {
		return ErrExited
	}
	err := poll(ctx, proc.Done(), pollInterval, func() error {
		_, err := n.Mode(ctx)
		return err
	})
	if err != nil {
		return fmt.Errorf("harness: server %d at %s does not serve: %w; its log ends:\n%s", n.id, n.addr, err, n.LogTail())
	}
	return nil
}

// LogTail returns the last 4 KiB of the server's log, for messages.
func (n *Server) LogTail() string { return tail(n.LogPath()) }

// tail returns the last 4 KiB of a log, or the error of reading it.
func tail(path string) string {
	log, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(log[max(0, len(log)-4096):])
}

// QuorumPort returns the port on which the server listens for followers while it is the leader,
// or 0 for a standalone server.
func (n *Server) QuorumPort() int { return n.quorumPort }
