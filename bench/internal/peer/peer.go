package peer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/zklock/zklock/bench/internal/load"
	"github.com/zklock/zklock/bench/internal/proc"
)

// startTimeout bounds the time from the start of a server to its first answer.
const startTimeout = 5 * time.Minute

// probeInterval is the time between two attempts to connect to a starting server, and so the
// error of the start times. probeTimeout limits an attempt.
const (
	probeInterval = 2 * time.Millisecond
	probeTimeout  = 2 * time.Second
)

// ErrStart is wrapped by errors about a server that did not start.
var ErrStart = errors.New("peer: the server did not start")

// Kind is a kind of server.
type Kind struct {
	// Name is the name in the table.
	Name string
	// command returns the command that runs a server in the foreground with the
	// configuration file.
	command func(config string) *exec.Cmd
	// live returns the bytes of live objects after a collection. It is nil if the process
	// cannot report them.
	live func(ctx context.Context, pid int) (int64, error)
}

// Server is one server. It must be used by one goroutine only.
type Server struct {
	Kind *Kind
	Addr string // host:port for clients
	dir  string
	proc *proc.Process
}

// New prepares a server with its files below dir, which it creates. It does not start the
// server.
func New(kind *Kind, dir string) (*Server, error) {
	data := filepath.Join(dir, "data")
	if err := os.MkdirAll(data, 0o700); err != nil {
		return nil, fmt.Errorf("peer: %w", err)
	}
	ports, err := freePorts(1)
	if err != nil {
		return nil, err
	}
	s := &Server{Kind: kind, Addr: fmt.Sprintf("127.0.0.1:%d", ports[0]), dir: dir}
	if err := os.WriteFile(s.config(), []byte(config(data, ports[0])), 0o600); err != nil {
		return nil, fmt.Errorf("peer: %w", err)
	}
	return s, nil
}

func (s *Server) config() string { return filepath.Join(s.dir, "zoo.cfg") }

// config returns the zoo.cfg of every server: that of ZooKeeper's sample, without the limit
// on connections from one address, because all connections come from one address. The log
// is synced, which is the default.
func config(data string, port int) string {
	return fmt.Sprintf(`tickTime=2000
dataDir=%s
clientPort=%d
clientPortAddress=127.0.0.1
maxClientCnxns=0
4lw.commands.whitelist=*
admin.enableServer=false
`, data, port)
}

// Start starts the server and returns the time from the start of the process to the answer
// to a client's handshake.
func (s *Server) Start() (time.Duration, error) {
	begin := time.Now()
	if err := s.launch(); err != nil {
		return 0, err
	}
	answered := make(chan time.Duration, startTimeout/probeInterval)
	var probes sync.WaitGroup
	defer probes.Wait()
	tick := time.NewTicker(probeInterval)
	defer tick.Stop()
	// A JVM may accept a connection before it can serve it, and never answer on it. So each
	// tick makes another attempt.
	for time.Since(begin) < startTimeout {
		probes.Go(func() { probe(s.Addr, begin, answered) })
		select {
		case took := <-answered:
			return took, nil
		case <-s.proc.Done():
			return 0, fmt.Errorf("%w: %s: %w; see %s", ErrStart, s.Kind.Name, s.proc.Err(), s.log())
		case <-tick.C:
		}
	}
	s.proc.Kill()
	return 0, fmt.Errorf("%w: %s: no answer for %v; see %s", ErrStart, s.Kind.Name, startTimeout, s.log())
}

func (s *Server) log() string { return filepath.Join(s.dir, "server.log") }

// launch starts the process.
func (s *Server) launch() (err error) {
	s.proc, err = proc.Start(s.Kind.command(s.config()), s.log())
	return err
}

// probe tries one handshake and sends the time from begin to the answer.
func probe(addr string, begin time.Time, answered chan<- time.Duration) {
	c, err := load.DialTimeout(addr, probeTimeout)
	if err != nil {
		return
	}
	answered <- time.Since(begin)
	// If this fails, the server keeps the session until its timeout.
	_ = c.Close()
}

// Kill kills the server, as in a crash.
func (s *Server) Kill() {
	if s.proc != nil {
		s.proc.Kill()
	}
}

// PID returns the id of the server's process.
func (s *Server) PID() int { return s.proc.PID() }

// RSS returns the server's resident memory in bytes.
func (s *Server) RSS() (int64, error) { return proc.RSS(s.PID()) }

// Live returns the size in bytes of the live objects after a garbage collection, and
// whether the server can report it.
func (s *Server) Live(ctx context.Context) (int64, bool, error) {
	if s.Kind.live == nil {
		return 0, false, nil
	}
	n, err := s.Kind.live(ctx, s.PID())
	return n, err == nil, err
}
