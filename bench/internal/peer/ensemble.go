package peer

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/zklock/zklock/bench/internal/load"
)

// An Ensemble is three servers of Apache ZooKeeper on this machine.
type Ensemble struct {
	Servers []*Server
}

// members is the number of servers of an ensemble.
const members = 3

// NewEnsemble prepares and starts an ensemble, with its files below dir, and returns when
// every member serves.
func NewEnsemble(kind *Kind, dir string) (*Ensemble, error) {
	ports, err := freePorts(2 * members)
	if err != nil {
		return nil, err
	}
	var lines strings.Builder
	lines.WriteString("initLimit=10\nsyncLimit=5\n")
	for i := range members {
		fmt.Fprintf(&lines, "server.%d=127.0.0.1:%d:%d\n", i+1, ports[2*i], ports[2*i+1])
	}
	e := &Ensemble{}
	for i := range members {
		s, err := New(kind, filepath.Join(dir, fmt.Sprint(i+1)))
		if err != nil {
			return nil, errors.Join(err, e.kill())
		}
		if err := s.join(i+1, lines.String()); err != nil {
			return nil, errors.Join(err, e.kill())
		}
		e.Servers = append(e.Servers, s)
	}
	for _, s := range e.Servers {
		if err := s.launch(); err != nil {
			return nil, errors.Join(err, e.kill())
		}
	}
	for _, s := range e.Servers {
		if err := s.await(startTimeout); err != nil {
			return nil, errors.Join(err, e.kill())
		}
	}
	return e, nil
}

// join configures a prepared server as the member with an id.
func (s *Server) join(id int, lines string) error {
	f, err := os.OpenFile(s.config(), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("peer: %w", err)
	}
	_, err = f.WriteString(lines)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("peer: %w", err)
	}
	return os.WriteFile(filepath.Join(s.dir, "data", "myid"), fmt.Appendln(nil, id), 0o600)
}

// await returns when the server has answered a handshake. A member without a quorum answers
// none.
func (s *Server) await(limit time.Duration) error {
	for end := time.Now().Add(limit); time.Now().Before(end); {
		c, err := load.DialTimeout(s.Addr, probeTimeout)
		if err == nil {
			return c.Close()
		}
		select {
		case <-s.proc.Done():
			return fmt.Errorf("%w: %s: %w; see its log in %s", ErrStart, s.Kind.Name, s.proc.Err(), s.dir)
		case <-time.After(awaitInterval):
		}
	}
	return fmt.Errorf("%w: %s: no answer for %v; see its log in %s", ErrStart, s.Kind.Name, limit, s.dir)
}

// awaitInterval is the interval between these handshakes.
const awaitInterval = 50 * time.Millisecond

// Addr returns the connection string of all members.
func (e *Ensemble) Addr() string {
	var addrs []string
	for _, s := range e.Servers {
		addrs = append(addrs, s.Addr)
	}
	return strings.Join(addrs, ",")
}

// Kill kills all members.
func (e *Ensemble) Kill() { _ = e.kill() }

func (e *Ensemble) kill() error {
	for _, s := range e.Servers {
		s.Kill()
	}
	return nil
}

// freePorts returns unused ports. It finds all of them at once, so that they differ. If
// another program takes one before the server does, the server does not start.
func freePorts(n int) ([]int, error) {
	var ports []int
	for range n {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("peer: %w", err)
		}
		defer ln.Close()
		ports = append(ports, ln.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}
