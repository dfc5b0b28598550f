package zktest

import (
	"context"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"
)

// Direction is the direction of data through a relay.
type Direction int

// The two directions, as seen from the client.
const (
	ToServer Direction = iota
	ToClient
)

// String returns "to server" or "to client".
func (d Direction) String() string {
	if d == ToServer {
		return "to server"
	}
	return "to client"
}

// Relay forwards data between clients and a server, reads the frames, and injects faults.
// It is embedded in [Server], [Proxy], and [Route]. It is safe for concurrent use. A fault
// that a method switches on applies to every connection, present and future, until it is
// switched off.
type Relay struct {
	dial   func(context.Context) (net.Conn, error) // to where the relay leads
	bypass func(context.Context) (net.Conn, error) // to the server, past all faults
	port   port

	pumps sync.WaitGroup // goroutines of links

	mu      sync.Mutex
	eased   sync.Cond // blocked changed, or a link ended
	links   map[*link]bool
	lastID  int
	closed  bool
	refuse  bool
	blocked [2]bool
	delay   time.Duration
	delayBy func(Frame) time.Duration // nil for none; comes on top
	trickle time.Duration
	rules   []*Fault
	release Release
	known   *passwords
}

func (r *Relay) init(dial, bypass func(context.Context) (net.Conn, error), known *passwords) {
	r.dial, r.bypass, r.known = dial, bypass, known
	r.eased.L = &r.mu
	r.links = make(map[*link]bool)
}

// Refuse makes new connections fail as if no server listened, if on is true. Existing
// connections continue; see CutConnections.
func (r *Relay) Refuse(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refuse = on
}

// Trickle lets one byte pass per interval, in each direction. Zero ends it.
func (r *Relay) Trickle(every time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.trickle = every
}

// CutConnections resets every existing connection at both ends. Data in flight is lost.
// Clients reconnect at once and resume their sessions. To prevent that, call Refuse first.
func (r *Relay) CutConnections() {
	for _, l := range r.everyLink() {
		l.cut()
	}
}

// HalfOpen closes the server's end of every existing connection without notice to the
// clients. To a client, the connection looks open, but it receives nothing more.
func (r *Relay) HalfOpen() {
	for _, l := range r.everyLink() {
		l.abandon()
	}
}

// Connections returns the number of connections through the relay.
func (r *Relay) Connections() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.links)
}

func (r *Relay) everyLink() []*link {
	r.mu.Lock()
	defer r.mu.Unlock()
	links := make([]*link, 0, len(r.links))
	for l := range r.links {
		links = append(links, l)
	}
	return links
}

// connect puts a link between the client's connection and the server. After an
// error the connection is closed.
func (r *Relay) connect(ctx context.Context, client net.Conn) error {
	if r.refuses() {
		reset(client)
		return fmt.Errorf("zktest: connection refused on request: %w", syscall.ECONNREFUSED)
	}
	server, err := r.dial(ctx)
	if err != nil {
		reset(client)
		return fmt.Errorf("zktest: %w: %w", err, syscall.ECONNREFUSED)
	}
	l := newLink(r, client, server)
	r.mu.Lock()
	ok := !r.closed
	if ok {
		r.lastID++
		l.id = r.lastID
		r.links[l] = true
		r.pumps.Add(4)
	}
	r.mu.Unlock()
	if !ok {
		reset(client)
		reset(server)
		return fmt.Errorf("zktest: closed: %w", syscall.ECONNREFUSED)
	}
	l.start()
	return nil
}

func (r *Relay) refuses() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refuse || r.closed
}

func (r *Relay) remove(l *link) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.links, l)
	r.eased.Broadcast()
}

// close ends the port and every link, and waits for their goroutines.
func (r *Relay) close() {
	r.port.close()
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.CutConnections()
	r.pumps.Wait()
}

// reset closes c so that the peer sees a reset rather than an orderly end,
// where the kind of connection can do that.
func reset(c net.Conn) {
	switch c := c.(type) {
	case interface{ CloseAbrupt() }:
		c.CloseAbrupt()
	case *net.TCPConn:
		c.SetLinger(0) // an error means that it is closed already
	}
	c.Close()
}
