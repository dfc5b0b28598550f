package peer

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/zklock/zklock/bench/internal/proc"
)

// An Other is a server that does not speak ZooKeeper's protocol.
type Other struct {
	Addr string
	proc *proc.Process
}

// Etcd starts an etcd of one member, which by default syncs each write.
func Etcd(dir string) (*Other, error) {
	ports, err := freePorts(2)
	if err != nil {
		return nil, err
	}
	client, peer := fmt.Sprintf("127.0.0.1:%d", ports[0]), fmt.Sprintf("http://127.0.0.1:%d", ports[1])
	return other("etcd", dir, client, func() *exec.Cmd {
		return exec.Command("etcd", "--data-dir", filepath.Join(dir, "data"),
			"--listen-client-urls", "http://"+client, "--advertise-client-urls", "http://"+client,
			"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default="+peer)
	})
}

// Redis starts a redis that syncs each write before it answers, so a lock survives a crash of
// the server.
func Redis(dir string) (*Other, error) {
	ports, err := freePorts(1)
	if err != nil {
		return nil, err
	}
	return other("redis-server", dir, fmt.Sprintf("127.0.0.1:%d", ports[0]), func() *exec.Cmd {
		return exec.Command("redis-server", "--port", fmt.Sprint(ports[0]), "--bind", "127.0.0.1",
			"--dir", dir, "--appendonly", "yes", "--appendfsync", "always", "--save", "")
	})
}

// other starts a server and returns when it accepts connections.
func other(name, dir, addr string, command func() *exec.Cmd) (*Other, error) {
	if _, err := exec.LookPath(name); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotInstalled, err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("peer: %w", err)
	}
	p, err := proc.Start(command(), filepath.Join(dir, "server.log"))
	if err != nil {
		return nil, err
	}
	for end := time.Now().Add(startTimeout); time.Now().Before(end); {
		conn, err := net.DialTimeout("tcp", addr, probeTimeout)
		if err == nil {
			return &Other{addr, p}, conn.Close()
		}
		select {
		case <-p.Done():
			return nil, fmt.Errorf("%w: %s: %w; see %s", ErrStart, name, p.Err(), dir)
		case <-time.After(awaitInterval):
		}
	}
	p.Kill()
	return nil, fmt.Errorf("%w: %s: no answer for %v; see %s", ErrStart, name, startTimeout, dir)
}

// PID returns the id of the server's process.
func (o *Other) PID() int { return o.proc.PID() }

// Kill kills the server.
func (o *Other) Kill() { o.proc.Kill() }
