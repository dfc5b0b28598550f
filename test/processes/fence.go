package processes

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// fenceWait bounds one question to the resource, which answers at once.
const fenceWait = 30 * time.Second

// The resource's answers.
const (
	fenceTook    = 1
	fenceRefused = 0
)

// Fence is a resource that refuses a token lower than the highest it has seen.
// It listens on a unix socket; each request is a token and the number of the
// process, of 8 bytes each, each answer a byte. Its methods may be called from
// any goroutine.
type Fence struct {
	ln   net.Listener
	done sync.WaitGroup // its goroutines
	quit chan struct{}  // closed by Close

	mu      sync.Mutex
	trap    chan *Caught // takes one request, if not nil
	conns   map[net.Conn]bool
	closed  bool
	highest int64
	tokens  int // different ones that it acted on
	took    int
	refused int
}

// ListenFence starts a resource, which Close ends.
func ListenFence(path string) (*Fence, error) {
	ln, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	f := &Fence{ln: ln, conns: map[net.Conn]bool{}, quit: make(chan struct{})}
	f.done.Go(f.accept) // ends when the listener is closed
	return f, nil
}

func (f *Fence) accept() {
	for {
		conn, err := f.ln.Accept()
		if err != nil {
			return
		}
		f.mu.Lock()
		closed := f.closed
		if !closed {
			f.conns[conn] = true
			f.done.Go(func() { f.serve(conn) }) // ends with the connection
		}
		f.mu.Unlock()
		if closed {
			_ = conn.Close()
		}
	}
}

func (f *Fence) serve(conn net.Conn) {
	defer func() {
		_ = conn.Close()
		f.mu.Lock()
		delete(f.conns, conn)
		f.mu.Unlock()
	}()
	var request [16]byte
	for {
		if _, err := io.ReadFull(conn, request[:]); err != nil {
			return
		}
		f.trapped(int(binary.BigEndian.Uint64(request[8:])))
		answer := byte(fenceRefused)
		if f.Submit(int64(binary.BigEndian.Uint64(request[:8]))) {
			answer = fenceTook
		}
		if _, err := conn.Write([]byte{answer}); err != nil {
			return
		}
	}
}

// Caught is a request that is held up on its way to the resource: whoever made
// it looked at its hold just before.
type Caught struct {
	Proc int           // the process that made it
	free chan struct{} // closed by Free
}

// Free lets the request go on.
func (c *Caught) Free() { close(c.free) }

// Catch holds up the next request, which the caller has to free. It waits for
// one for so long, and returns nil if there is none. It is used by one goroutine
// at a time.
func (f *Fence) Catch(wait time.Duration) *Caught {
	trap := make(chan *Caught)
	f.setTrap(trap)
	defer f.setTrap(nil)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case c := <-trap:
		return c
	case <-timer.C:
		return nil
	}
}

func (f *Fence) setTrap(trap chan *Caught) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.trap = trap
}

// trapped returns when the request may go on: at once, unless it is caught.
func (f *Fence) trapped(proc int) {
	c := &Caught{Proc: proc, free: make(chan struct{})}
	f.mu.Lock()
	trap := f.trap
	f.trap = nil
	f.mu.Unlock()
	if trap == nil {
		return
	}
	select {
	case trap <- c: // unless Catch has just given up
	default:
		return
	}
	select {
	case <-c.free:
	case <-f.quit:
	}
}

// Submit asks the resource to act for a token, and reports whether it did.
func (f *Fence) Submit(token int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if token < f.highest {
		f.refused++
		return false
	}
	if token > f.highest {
		f.tokens++
	}
	f.highest = token
	f.took++
	return true
}

// Counts returns how often the resource acted, and how often it refused: each
// refusal is a write that an unguarded resource would have taken though a later
// holder had written before.
func (f *Fence) Counts() (took, refused int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.took, f.refused
}

// Holders returns how many holders the resource acted for.
func (f *Fence) Holders() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.tokens
}

// Close ends the resource and its connections.
func (f *Fence) Close() {
	_ = f.ln.Close()
	f.mu.Lock()
	if !f.closed {
		close(f.quit)
	}
	f.closed = true
	for conn := range f.conns {
		_ = conn.Close()
	}
	f.mu.Unlock()
	f.done.Wait()
}

// submit asks the resource at the other end of a connection.
func submit(conn net.Conn, token int64, proc int) (took bool, err error) {
	if err := conn.SetDeadline(time.Now().Add(fenceWait)); err != nil {
		return false, err
	}
	request := binary.BigEndian.AppendUint64(nil, uint64(token))
	if _, err := conn.Write(binary.BigEndian.AppendUint64(request, uint64(proc))); err != nil {
		return false, fmt.Errorf("processes: the resource: %w", err)
	}
	var answer [1]byte
	if _, err := io.ReadFull(conn, answer[:]); err != nil {
		return false, fmt.Errorf("processes: the resource: %w", err)
	}
	return answer[0] == fenceTook, nil
}
