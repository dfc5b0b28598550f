package faults

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zklock/zklock/test/harness"
)

// ErrResource reports that the resource gave no answer.
var ErrResource = errors.New("faults: the resource does not answer")

// resourceWait bounds one request to the resource.
const resourceWait = 60 * time.Second

// longestPaths bounds the paths in a request.
const longestPaths = 4096

// Resource is the guarded resource. For each path, it refuses a token lower than the highest
// one that it has seen, and counts such stale writes. It listens on a unix socket. The
// methods may be called from any goroutine.
type Resource struct {
	// Unfenced makes the resource apply every write. It is set before the first request.
	Unfenced bool

	conns *harness.Conns
	quit  chan struct{} // closed by end
	end   func()        // called by Close, any number of times

	mu      sync.Mutex // guards the fields below; never held across a wait
	trap    chan *Caught
	highest map[string]int64
	applied int
	refused int
	stale   int
}

// newResource returns a resource without a socket.
func newResource() *Resource {
	r := &Resource{quit: make(chan struct{}), highest: map[string]int64{}}
	r.end = sync.OnceFunc(func() { close(r.quit) })
	return r
}

// Listen returns a resource that listens on a socket until Close is called.
func Listen(path string) (*Resource, error) {
	ln, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("faults: the resource: %w", err)
	}
	r := newResource()
	r.conns = harness.ServeConns(ln, r.serve)
	return r, nil
}

// Addr is the path of the socket.
func (r *Resource) Addr() string { return r.conns.Addr() }

// serve answers one connection. A request has a token, the number of a worker, and paths. The
// answer is the result of Write.
func (r *Resource) serve(conn net.Conn) {
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
		r.waitWhileCaught(c)
		place := r.Write(c.Token, c.Paths...)
		if _, err := conn.Write(binary.BigEndian.AppendUint64(nil, uint64(place))); err != nil {
			return
		}
	}
}

// Write applies a write to all paths or to none. It returns the position of the write in the
// order of all applied writes, from 1 on, or 0 if it was refused.
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
	r.applied++
	for _, path := range paths {
		r.highest[path] = max(r.highest[path], token)
	}
	return int64(r.applied)
}

// Counts returns the numbers of applied, refused, and stale writes. A stale write follows one
// with a higher token.
func (r *Resource) Counts() (applied, refused, stale int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.applied, r.refused, r.stale
}

// Passed reports whether a client with a higher token has written, so that the caught write
// is stale.
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

// Caught is a write that is delayed in flight. Its client has just checked the hold.
type Caught struct {
	Worker int
	Token  int64
	Paths  []string
	free   chan struct{}
}

// Free lets the write continue. It is called once.
func (c *Caught) Free() { close(c.free) }

// Catch delays the next write, which the caller must free. It returns nil if there is no
// write within wait. Only one goroutine at a time may call it.
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

// waitWhileCaught waits while a write is caught.
func (r *Resource) waitWhileCaught(c *Caught) {
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
	r.end()
	r.conns.Close()
}

// ask sends a write to the resource over a connection: see Write.
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

// open starts a resource and a connection to it.
func open(t *testing.T, unfenced bool) (*Resource, net.Conn) {
	t.Helper()
	r, err := Listen(filepath.Join(t.TempDir(), "r"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	r.Unfenced = unfenced
	conn, err := net.Dial("unix", r.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return r, conn
}

// TestResourceRefusesSmallerTokens checks that the resource refuses a write with a smaller
// token on any of its paths, and that a resource without a fence applies all writes.
func TestResourceRefusesSmallerTokens(t *testing.T) {
	for _, unfenced := range []bool{false, true} {
		r, conn := open(t, unfenced)
		last := int64(0)
		for i, step := range []struct {
			token   int64
			paths   []string
			applied bool
		}{
			{5, []string{"/x"}, true}, {5, []string{"/x"}, true}, {3, []string{"/y"}, true}, {4, []string{"/x"}, false},
			{4, []string{"/y", "/x"}, false}, {3, []string{"/y"}, true}, {1 << 40, []string{"/x", "/y"}, true}, {1<<40 - 1, []string{"/y"}, false},
		} {
			place, err := ask(conn, step.token, 3, step.paths)
			if err != nil || (place != 0) != (step.applied || unfenced) || place != 0 && place <= last {
				t.Errorf("step %d: place %d, %v", i, place, err)
			}
			last = max(last, place)
		}
		applied, refused, stale := r.Counts()
		if unfenced && (applied != 8 || refused != 0 || stale != 4) || !unfenced && (applied != 5 || refused != 3 || stale != 3) {
			t.Errorf("unfenced %v: %d applied, %d refused, %d stale", unfenced, applied, refused, stale)
		}
		r.Close()
		if _, err := ask(conn, 1<<50, 3, []string{"/x"}); !errors.Is(err, ErrResource) {
			t.Errorf("a closed resource: %v", err)
		}
	}
}

// TestResourceRefusesDelayedWrite checks that the resource refuses a write that arrives after
// one of a later holder.
func TestResourceRefusesDelayedWrite(t *testing.T) {
	r, conn := open(t, false)
	if c := r.Catch(time.Millisecond); c != nil {
		t.Fatalf("caught %+v without a writer", c)
	}
	late := make(chan bool, 1)
	caught := make(chan *Caught, 1)
	go func() { caught <- r.Catch(time.Minute) }() // ends with the next write
	for set := false; !set; {
		r.mu.Lock()
		set = r.trap != nil
		r.mu.Unlock()
	}
	go func() { // ends with the answer
		place, err := ask(conn, 5, 7, []string{"/x"})
		late <- place != 0 || err != nil
	}()
	c := <-caught
	if c == nil || c.Worker != 7 || c.Token != 5 || len(c.Paths) != 1 || c.Paths[0] != "/x" || r.Passed(c) {
		t.Fatalf("caught %+v, want worker 7", c)
	}
	if r.Write(6, "/x") == 0 {
		t.Error("a later holder was refused")
	}
	if !r.Passed(c) {
		t.Error("the caught write is not stale")
	}
	c.Free()
	if <-late {
		t.Error("the late write was applied")
	}
}
