package peer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/zklock/zklock/bench/internal/load"
	"github.com/zklock/zklock/bench/internal/proc"
)

// startTimeout bounds a start until the first answer.
const startTimeout = 5 * time.Minute

// probeInterval is how often a starting server is tried: it is the error of the
// start times. A try is given up after probeTimeout.
const (
	probeInterval = 2 * time.Millisecond
	probeTimeout  = 2 * time.Second
)

// ErrStart is wrapped by errors about a server that did not start.
var ErrStart = errors.New("peer: the server did not start")

// Kind is a make of server.
type Kind struct {
	// Name stands in the table.
	Name string
	// command gives the command that runs a server in the foreground with the
	// configuration file.
	command func(config string) *exec.Cmd
	// live gives the bytes of live objects after a collection; nil where the
	// process cannot be asked.
	live func(ctx context.Context, pid int) (int64, error)
}

// Server is one running server. Its methods are for one goroutine.
type Server struct {
	Kind *Kind
	Addr string // host:port for clients
	dir  string
	proc *proc.Process
}

// New prepares a server with its files below dir, which is made. It does not
// start it.
func New(kind *Kind, dir string) (*Server, error) {
	data := filepath.Join(dir, "data")
	if err := os.MkdirAll(data, 0o700); err != nil {
		return nil, fmt.Errorf("peer: %w", err)
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	s := &Server{Kind: kind, Addr: fmt.Sprintf("127.0.0.1:%d", port), dir: dir}
	if err := os.WriteFile(s.config(), []byte(config(data, port)), 0o600); err != nil {
		return nil, fmt.Errorf("peer: %w", err)
	}
	return s, nil
}

func (s *Server) config() string { return filepath.Join(s.dir, "zoo.cfg") }

// config is the zoo.cfg of every server: what ZooKeeper's sample has, without
// the limit of connections from one address, as all of them come from one.
// Whether the log is synced is left at the default, which is to sync.
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

// freePort finds a port that nobody listens at. Somebody may take it before
// the server does, which then does not start.
func freePort() (int, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("peer: %w", err)
	}
	defer ln.Close()
	return ln.Addr().(*net.TCPAddr).Port, nil
}

// Start starts the server and returns how long it took from the start of the
// process to the answer to a client's handshake.
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
	// A JVM may accept a connection before it can do anything with it, and never
	// answer there: so there is another one with every tick.
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

// probe tries a handshake once and tells how long after begin it was answered.
func probe(addr string, begin time.Time, answered chan<- time.Duration) {
	c, err := load.DialTimeout(addr, probeTimeout)
	if err != nil {
		return
	}
	answered <- time.Since(begin)
	// The server has the session until it runs out, if this fails.
	_ = c.Close()
}

// Kill ends the server as a crash would.
func (s *Server) Kill() {
	if s.proc != nil {
		s.proc.Kill()
	}
}

// PID is the id of the server's process.
func (s *Server) PID() int { return s.proc.PID() }

// RSS is the server's resident memory in bytes.
func (s *Server) RSS() (int64, error) { return proc.RSS(s.PID()) }

// Live is the size in bytes of what a server with a garbage collector still
// uses, after a collection, and whether it can be told.
func (s *Server) Live(ctx context.Context) (int64, bool, error) {
	if s.Kind.live == nil {
		return 0, false, nil
	}
	n, err := s.Kind.live(ctx, s.PID())
	return n, err == nil, err
}
