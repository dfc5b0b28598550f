package harness

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
)

// ports are the ports that this process has reserved. A reserved port on which nothing listens
// may belong to a server that is about to start.
type ports struct {
	mu    sync.Mutex
	given map[int]bool
}

// freePorts is shared by all tests of the process.
var freePorts ports

// The range is below Linux's ephemeral ports, which begin at 32768. Otherwise an outgoing
// connection could get the port of a server that restarts.
const (
	firstPort = 10000
	lastPort  = 31999
)

// FreePort reserves a port of 127.0.0.1 on which nothing listens, for a server that the test may
// restart.
func FreePort() (int, error) {
	port, err := freePorts.take(1)
	if err != nil {
		return 0, err
	}
	return port[0], nil
}

// take reserves n ports of 127.0.0.1 on which nothing listens.
func (p *ports) take(n int) ([]int, error) {
	found := make([]int, 0, n)
	for range 200 * n {
		if len(found) == n {
			break
		}
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		if p.reserve(port) {
			found = append(found, port)
		}
	}
	if len(found) < n {
		return nil, fmt.Errorf("harness: no free port of 127.0.0.1 between %d and %d", firstPort, lastPort)
	}
	return found, nil
}

// reserve reserves a port, and reports whether it was neither reserved nor in use.
func (p *ports) reserve(port int) bool {
	p.mu.Lock()
	used := p.given[port]
	if p.given == nil {
		p.given = make(map[int]bool)
	}
	p.given[port] = true
	p.mu.Unlock()
	if used {
		return false
	}
	ln, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return false
	}
	return ln.Close() == nil
}
