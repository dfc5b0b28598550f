package clients

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
)

// maxFrame is the default of jute.maxbuffer.
const maxFrame = 0xfffff

// proxy forwards connections to a server, frame by frame. The recorder gets each frame before the
// proxy forwards it, so a frame is recorded before it has an effect.
type proxy struct {
	ln     net.Listener
	target string
	rec    *recorder
	wg     sync.WaitGroup // accept and the connections' goroutines

	mu    sync.Mutex
	conns map[net.Conn]bool // both sides of each connection
	gate  chan struct{}     // new connections wait until it is closed
	ended bool
}

func newProxy(target string, rec *recorder) (*proxy, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("clients: %w", err)
	}
	p := &proxy{ln: ln, target: target, rec: rec, conns: make(map[net.Conn]bool), gate: make(chan struct{})}
	close(p.gate)
	p.wg.Go(p.accept) // ends when close closes the listener
	return p, nil
}

func (p *proxy) addr() string { return p.ln.Addr().String() }

// cut closes all connections and delays new ones until open.
func (p *proxy) cut() {
	p.mu.Lock()
	p.gate = make(chan struct{})
	p.mu.Unlock()
	p.closeConns()
}

func (p *proxy) open() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.gate:
	default:
		close(p.gate)
	}
}

func (p *proxy) closeConns() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.conns {
		_ = conn.Close()
	}
	clear(p.conns)
}

// close ends the proxy and waits for its goroutines.
func (p *proxy) close() {
	_ = p.ln.Close()
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	p.open()
	p.closeConns()
	p.wg.Wait()
}

func (p *proxy) accept() {
	for {
		client, err := p.ln.Accept()
		if err != nil {
			return
		}
		p.wg.Go(func() { p.serve(client) }) // ends with the connection or close
	}
}

// keep registers conn for cut and close. If the proxy has ended, it closes conn.
func (p *proxy) keep(conn net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		_ = conn.Close()
		return false
	}
	p.conns[conn] = true
	return true
}

func (p *proxy) serve(client net.Conn) {
	p.mu.Lock()
	gate := p.gate
	p.mu.Unlock()
	<-gate
	server, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", p.target)
	if err != nil {
		_ = client.Close()
		return
	}
	if !p.keep(client) || !p.keep(server) {
		_ = client.Close()
		_ = server.Close()
		return
	}
	d := &connRecorder{rec: p.rec, ops: make(map[int32]int32)}
	p.wg.Go(func() { forward(client, server, d.fromClient) }) // ends when either side closes
	forward(server, client, d.fromServer)
}

// forward copies frames until one side closes its connection, then closes both.
func forward(from, to net.Conn, note func(body []byte)) {
	defer func() {
		_ = from.Close()
		_ = to.Close()
	}()
	for {
		frame, err := readFrame(from)
		if err != nil {
			return
		}
		note(frame[4:])
		if _, err := to.Write(frame); err != nil {
			return
		}
	}
}

// readFrame returns a frame with its length.
func readFrame(r io.Reader) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(length[:])
	if n > maxFrame {
		return nil, fmt.Errorf("%w: a frame of %d bytes", ErrFormat, n)
	}
	frame := make([]byte, 4+n)
	copy(frame, length[:])
	_, err := io.ReadFull(r, frame[4:])
	return frame, err
}
