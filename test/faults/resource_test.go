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

// Resource is what the locks guard. For each path, it refuses a token lower than the
// highest it has seen. It also counts the writes that a resource without a fence would
// have applied. It listens on a unix socket. Its methods may be called from any
// goroutine.
type Resource struct {
	// Unfenced makes it apply every write. It is set before the first request.
	Unfenced bool

	conns *harness.Conns
	quit  chan struct{} // closed by end
	end   func()        // called by Close, any number of times

	mu      sync.Mutex // guards what follows; never held across a wait
	trap    chan *Caught
	highest map[string]int64
	took    int
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

// serve answers one connection. A request has a token, the number of a worker, and
// paths. The answer is the place of the write in the order of all that were applied,
// or 0 if it was refused.
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
		r.held(c)
		place := r.Write(c.Token, c.Paths...)
		if _, err := conn.Write(binary.BigEndian.AppendUint64(nil, uint64(place))); err != nil {
			return
		}
	}
}

// Write applies a write on some paths, on all or on none. It returns the place of the
// write in the order of all that were applied, from 1 on, or 0 if it was refused.
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

// Counts returns how many writes the resource applied and refused, and how many were
// stale: after one with a higher token.
func (r *Resource) Counts() (took, refused, stale int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.took, r.refused, r.stale
}

// Passed reports whether a client with a higher token has written since, so that the
// caught write would be stale now.
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

// Caught is a write that is delayed on its way. Its client checked the hold just before.
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

// held returns when a write may continue: at once, unless it is caught.
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
	r.end()
	r.conns.Close()
}

// ask sends a write to the resource at the other end of a connection: see Write.
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

// TestResourceRefusesSmallerTokens checks that tokens may not fall on any path of a
// write, and that a resource without a fence applies everything.
func TestResourceRefusesSmallerTokens(t *testing.T) {
	for _, unfenced := range []bool{false, true} {
		r, conn := open(t, unfenced)
		last := int64(0)
		for i, step := range []struct {
			token int64
			paths []string
			took  bool
		}{
			{5, []string{"/x"}, true}, {5, []string{"/x"}, true}, {3, []string{"/y"}, true}, {4, []string{"/x"}, false},
			{4, []string{"/y", "/x"}, false}, {3, []string{"/y"}, true}, {1 << 40, []string{"/x", "/y"}, true}, {1<<40 - 1, []string{"/y"}, false},
		} {
			place, err := ask(conn, step.token, 3, step.paths)
			if err != nil || (place != 0) != (step.took || unfenced) || place != 0 && place <= last {
				t.Errorf("step %d: place %d, %v", i, place, err)
			}
			last = max(last, place)
		}
		took, refused, stale := r.Counts()
		if unfenced && (took != 8 || refused != 0 || stale != 4) || !unfenced && (took != 5 || refused != 3 || stale != 3) {
			t.Errorf("unfenced %v: %d taken, %d refused, %d stale", unfenced, took, refused, stale)
		}
		r.Close()
		if _, err := ask(conn, 1<<50, 3, []string{"/x"}); !errors.Is(err, ErrResource) {
			t.Errorf("a closed resource: %v", err)
		}
	}
}

// TestFenceCatches checks that a write that arrives after that of a later holder is
// refused.
func TestFenceCatches(t *testing.T) {
	r, conn := open(t, false)
	if c := r.Catch(time.Millisecond); c != nil {
		t.Fatalf("caught %+v without a writer", c)
	}
	late := make(chan bool, 1)
	caught := make(chan *Caught, 1)
	go func() { caught <- r.Catch(time.Minute) }() // ends when it has caught
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
		t.Error("the write that is held up is no stale one")
	}
	c.Free()
	if <-late {
		t.Error("the late write was taken")
	}
}
