package storm

import (
	"errors"
	"net"
	"path/filepath"
	"testing"
	"time"
)

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

// TestResource: tokens may not fall, path by path, and all of a write's paths
// count; the twin takes everything.
func TestResource(t *testing.T) {
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
		t.Fatalf("caught %+v, of nobody", c)
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
