package storm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"
)

// ErrResource says that the resource gave no answer.
var ErrResource = errors.New("storm: the resource does not answer")

// resourceWait bounds one question to the resource, but for those that are caught.
const resourceWait = 60 * time.Second

// longestPaths bounds what a request may name.
const longestPaths = 4096

// Resource is what the locks guard: for each path it refuses a token lower than
// the highest it has seen. Beside it stands its twin, which takes everything and
// counts what a resource without a fence would have let pass. It listens on a unix
// socket. Its methods may be called from any goroutine.
type Resource struct {
	// Unfenced makes the answers the twin's. It is set before anybody asks.
	Unfenced bool

	ln   net.Listener
	done sync.WaitGroup // its goroutines
	quit chan struct{}  // closed by Close

	mu      sync.Mutex // guards what follows; never held across a wait
	trap    chan *Caught
	conns   map[net.Conn]bool
	closed  bool
	highest map[string]int64
	took    int
	refused int
	stale   int
}

// Listen starts a resource, which Close ends.
func Listen(path string) (*Resource, error) {
	ln, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("storm: the resource: %w", err)
	}
	r := &Resource{ln: ln, quit: make(chan struct{}), conns: map[net.Conn]bool{}, highest: map[string]int64{}}
	r.done.Go(r.accept) // ends when the listener is closed
	return r, nil
}

// Addr is the path of the socket.
func (r *Resource) Addr() string { return r.ln.Addr().String() }

func (r *Resource) accept() {
	for {
		conn, err := r.ln.Accept()
		if err != nil {
			return
		}
		r.mu.Lock()
		closed := r.closed
		if !closed {
			r.conns[conn] = true
			r.done.Go(func() { r.serve(conn) }) // ends with the connection
		}
		r.mu.Unlock()
		if closed {
			_ = conn.Close()
		}
	}
}

// serve answers one connection: a request is a token, the number of a worker and
// paths, the answer the place of the write in the order of those that were taken,
// 0 if it was refused.
func (r *Resource) serve(conn net.Conn) {
	defer func() {
		_ = conn.Close()
		r.mu.Lock()
		delete(r.conns, conn)
		r.mu.Unlock()
	}()
	var head [14]byte
	for {
		if _, err := io.ReadFull(conn, head[:]); err != nil {
			return
		}
		n := binary.BigEndian.Uint16(head[12:])
		if n > longestPaths {
			return
		}
		paths := make([]byte, n)
		if _, err := io.ReadFull(conn, paths); err != nil {
			return
		}
		c := &Caught{
			Worker: int(binary.BigEndian.Uint32(head[8:])), Token: int64(binary.BigEndian.Uint64(head[:])),
			Paths: strings.Split(string(paths), "\n"), free: make(chan struct{}),
		}
		r.held(c)
		place := r.Write(c.Token, c.Paths...)
		if _, err := conn.Write(binary.BigEndian.AppendUint64(nil, uint64(place))); err != nil {
			return
		}
	}
}

// Write has the resource act for a token on some paths, all or none. It returns
// the place of that in the order of all that it did, from 1 on, or 0 if it refused.
func (r *Resource) Write(token int64, paths ...string) (place int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	low := false
	for _, path := range paths {
		low = low || token < r.highest[path]
	}
	if low {
		r.stale++
	}
	if low && !r.Unfenced {
		r.refused++
		return 0
	}
	r.took++
	for _, path := range paths {
		r.highest[path] = max(r.highest[path], token)
	}
	return int64(r.took)
}

// Counts returns how many writes the resource took and refused, and how many its
// twin without a fence took though somebody later had written before.
func (r *Resource) Counts() (took, refused, stale int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.took, r.refused, r.stale
}

// Passed reports whether somebody with a higher token has written since: the
// caught write would be a stale one now.
func (r *Resource) Passed(c *Caught) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, path := range c.Paths {
		if c.Token < r.highest[path] {
			return true
		}
	}
	return false
}

// Caught is a write that is held up on its way: whoever makes it looked at its
// hold just before.
type Caught struct {
	Worker int      // whose it is
	Token  int64    // with which it comes
	Paths  []string // on which
	free   chan struct{}
}

// Free lets the write go on. It is called once.
func (c *Caught) Free() { close(c.free) }

// Catch holds up the next write, which the caller has to free. It waits for one
// for so long, and returns nil if there is none. One goroutine at a time uses it.
func (r *Resource) Catch(wait time.Duration) *Caught {
	trap := make(chan *Caught)
	r.setTrap(trap)
	defer r.setTrap(nil)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case c := <-trap:
		return c
	case <-timer.C:
		return nil
	}
}

func (r *Resource) setTrap(trap chan *Caught) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.trap = trap
}

// held returns when a write may go on: at once, unless it is caught.
func (r *Resource) held(c *Caught) {
	r.mu.Lock()
	trap := r.trap
	r.trap = nil
	r.mu.Unlock()
	if trap == nil {
		return
	}
	select {
	case trap <- c:
	case <-time.After(time.Second): // Catch has just given up
		return
	}
	select {
	case <-c.free:
	case <-r.quit:
	}
}

// Close ends the resource and its connections.
func (r *Resource) Close() {
	_ = r.ln.Close()
	r.mu.Lock()
	if !r.closed {
		close(r.quit)
	}
	r.closed = true
	for conn := range r.conns {
		_ = conn.Close()
	}
	r.mu.Unlock()
	r.done.Wait()
}

// ask asks the resource at the other end of a connection to act: see Write.
func ask(conn net.Conn, token int64, worker int, paths []string) (place int64, err error) {
	if err := conn.SetDeadline(time.Now().Add(resourceWait)); err != nil {
		return 0, err
	}
	all := strings.Join(paths, "\n")
	request := binary.BigEndian.AppendUint64(nil, uint64(token))
	request = binary.BigEndian.AppendUint32(request, uint32(worker))
	request = binary.BigEndian.AppendUint16(request, uint16(len(all)))
	if _, err := conn.Write(append(request, all...)); err != nil {
		return 0, fmt.Errorf("%w: %w", ErrResource, err)
	}
	var answer [8]byte
	if _, err := io.ReadFull(conn, answer[:]); err != nil {
		return 0, fmt.Errorf("%w: %w", ErrResource, err)
	}
	return int64(binary.BigEndian.Uint64(answer[:])), nil
}
