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

// serverClass runs standalone servers too, when zoo.cfg names no other server.
const serverClass = "org.apache.zookeeper.server.quorum.QuorumPeerMain"

// startTimeout bounds the start of a server up to its first answer. An idle
// machine needs one to three seconds. Like all limits here, it is for a server that
// hangs: a busy machine may be slow.
const startTimeout = 5 * time.Minute

// stopTimeout bounds how long threads take to stop once they were told.
const stopTimeout = time.Minute

// modeTimeout bounds how long a server may take to report its role. A search for the
// leader asks repeatedly, and one of the servers may be paused.
const modeTimeout = 5 * time.Second

// pollInterval is how often a starting server is asked.
const pollInterval = 50 * time.Millisecond

var (
	// ErrNotServing says that a server does not serve clients (now).
	ErrNotServing = errors.New("harness: server is not serving")
	// ErrRunning says that a server runs already.
	ErrRunning = errors.New("harness: server is running already")
)

// Server is one ZooKeeper server, a JVM of its own. Its methods may be called
// from any goroutine.
type Server struct {
	id         int
	addr       string
	dir        string
	javaFlags  []string
	prefix     []string // command that the JVM is run by, as "ip netns exec"
	quorumPort int

	mu        sync.Mutex // guards the fields below; never held across a wait
	classpath string
	proc      *Process
}

// StartServer starts a standalone server for this test, which the test's cleanup
// ends. Tests that need neither faults nor settings use [Shared], which costs
// no start.
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
		// What the manifest of zookeeper.jar leaves out.
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

// ID returns the server's number in its ensemble, from 1 on; 1 for a standalone one.
func (n *Server) ID() int { return n.id }

// Addr returns the host:port for clients. It stays the same over restarts.
func (n *Server) Addr() string { return n.addr }

// LogPath returns the file with the server's output, of all its runs.
func (n *Server) LogPath() string { return filepath.Join(n.dir, "server.log") }

// DataDir returns the server's dataDir.
func (n *Server) DataDir() string { return filepath.Join(n.dir, "data") }

// Pid returns the process id of the JVM, or 0 while none runs.
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

// Start starts the JVM and returns without waiting until it serves
// ([Server.WaitServing]).
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
	// ZooKeeper 3.4 ends without the classes of log4j that this property makes unnecessary.
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

// Terminate asks the server to end by SIGTERM, which runs its shutdown, and
// waits for its end; it kills the server when ctx ends first.
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

// Stop pauses the server by SIGSTOP: its sockets stay open and silent. It returns when
// all threads have stopped. The signal alone does not wait for that: another processor
// may run a thread a little longer.
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
			continue // a thread that ended meanwhile
		}
		// The state follows the name, which is in parentheses.
		_, state, _ := strings.Cut(string(stat), ") ")
		if !strings.HasPrefix(state, "T") {
			return fmt.Errorf("harness: %s says %.1q", file, state)
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

// SetRelease makes the next [Server.Start] start another release of ZooKeeper. It skips the
// test as [ZooKeeperClasspath] does.
func (n *Server) SetRelease(tb testing.TB, release string) {
	tb.Helper()
	classpath := ZooKeeperClasspath(tb, release)
	n.mu.Lock()
	n.classpath = classpath
	n.mu.Unlock()
}

// Restart kills the server if it runs, starts it on the same address and data,
// and waits until it serves.
func (n *Server) Restart(ctx context.Context) error {
	n.Kill()
	if err := n.Start(); err != nil {
		return err
	}
	return n.WaitServing(ctx)
}

// Mode asks the server for its role: "standalone", "leader" or "follower". A
// server that is up without a quorum gives [ErrNotServing].
func (n *Server) Mode(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, modeTimeout)
	defer cancel()
	answer, err := FourLetter(ctx, n.addr, "srvr")
	if err != nil {
		return "", err
	}
	mode := FourLetterField(answer, "Mode")
	if mode == "" {
		return "", fmt.Errorf("%w: server %d says %.100q", ErrNotServing, n.id, answer)
	}
	return mode, nil
}

// WaitServing waits until the server serves clients. It fails, with the end of
// the server's log, when its process ends or ctx does, and after some minutes at most.
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
		return fmt.Errorf("harness: server %d at %s never served: %w; its log ends:\n%s", n.id, n.addr, err, n.LogTail())
	}
	return nil
}

// LogTail returns the last 4 KiB of the server's log, for messages.
func (n *Server) LogTail() string { return tail(n.LogPath()) }

// tail returns the last 4 KiB of a log, or why it cannot be read.
func tail(path string) string {
	log, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(log[max(0, len(log)-4096):])
}

// QuorumPort returns the port on which the server, while it leads, listens for its
// followers. It is 0 for a standalone server.
func (n *Server) QuorumPort() int { return n.quorumPort }
